// SPDX-License-Identifier: MIT
/*
 * checks_pcie.c - D-47 .. D-52: what lies between a GPU and the drive that is nearest to it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gdscheck.h"
#include "read.h"

#define INTEL 0x8086
#define GOOGLE 0x1ae0
#define ZEN 0x17	/* the first AMD family whose host bridges all forward */
#define CLIMB 16	/* bridges above a function */

/* True: the pair has a drive. */
static bool has_pair(const struct gc_machine *m, struct gc_finding *f)
{
	if (!gc_has_gpu(m, f))
		return false;
	if (m->pair[0].drive)
		return true;
	gc_say(f, GC_SKIP, "there is no NVMe drive on the PCI bus");
	return false;
}

static void acs(const struct gc_machine *m, struct gc_finding *f)
{
	const struct gc_pair *p;
	struct facts_pci_acs acs;
	bool unknown = false;
	unsigned int i;

	if (!has_pair(m, f))
		return;
	for (i = 0; i < m->gpus; i++) {
		p = &m->pair[i];
		unknown |= p->way.acs_unknown;
		if (p->way.kind != FACTS_WAY_REDIRECT)
			continue;
		facts_pci_acs(m->root, p->way.at, &acs);
		gc_say(f, GC_WARN, "ACS of %s sends the bytes between GPU %s and drive %s up to the host bridge",
		       p->way.at, p->gpu->pci->address, p->drive->address);
		gc_seen(f, "sys/bus/pci/devices", "%s/config: ACS control 0x%02x", p->way.at, acs.on);
		gc_remedy(f, "switch ACS off in the BIOS, or boot with pci=disable_acs_redir=%s (it takes isolation away)",
			  p->way.at);
		return;
	}
	if (unknown) {
		gc_say(f, GC_SKIP, "only root may read the ACS registers: run it as root");
		return;
	}
	gc_say(f, GC_OK, "no bridge between GPU and drive redirects");
	gc_seen(f, "sys/bus/pci/devices", "ACS control of the bridges above %s and %s",
		m->pair[0].gpu->pci->address, m->pair[0].drive->address);
}

/* Of all GPUs, the one whose nearest drive is farthest */
static const struct gc_pair *farthest(const struct gc_machine *m)
{
	const struct gc_pair *p = &m->pair[0];
	unsigned int i;

	for (i = 1; i < m->gpus; i++)
		if (m->pair[i].way.kind > p->way.kind)
			p = &m->pair[i];
	return p;
}

static void distance(const struct gc_machine *m, struct gc_finding *f)
{
	const struct gc_pair *p = farthest(m);

	if (!has_pair(m, f))
		return;
	gc_seen(f, "sys/bus/pci/devices", "%s in %s, %s in %s", p->gpu->pci->address,
		p->gpu->pci->complex, p->drive->address, p->drive->complex);
	if (p->way.kind == FACTS_WAY_SWITCH || p->way.kind == FACTS_WAY_REDIRECT)
		gc_say(f, GC_OK, "GPU %s and drive %s have a bridge in common",
		       p->gpu->pci->address, p->drive->address);
	else if (p->way.kind == FACTS_WAY_HOST)
		gc_say(f, GC_OK, "GPU %s and drive %s are at one host bridge",
		       p->gpu->pci->address, p->drive->address);
	if (f->verdict == GC_OK)
		return;
	gc_say(f, GC_WARN, "GPU %s and its nearest drive %s are at two host bridges%s",
	       p->gpu->pci->address, p->drive->address,
	       p->gpu->pci->numa != p->drive->numa ? ", of two sockets" : "");
	gc_remedy(f, "put drive and GPU below one switch, or into slots of one socket");
}

/* -- does the host bridge forward from port to port? -- */

enum forwards { FORWARDS, WRITES_ONLY, SAME_ONLY, NOT_KNOWN };

/* Servers whose bridges do, by what the kernel's P2PDMA knows of them */
static const struct {
	unsigned int device;
	enum forwards how;
} intel_servers[] = {
	{ 0x3c00, SAME_ONLY }, { 0x3c01, SAME_ONLY }, { 0x2f00, SAME_ONLY },
	{ 0x2f01, SAME_ONLY }, { 0x2020, FORWARDS },  { 0x2030, FORWARDS },
	{ 0x2031, FORWARDS },  { 0x2032, FORWARDS },  { 0x2033, FORWARDS },
	{ 0x09a2, FORWARDS },
};

static bool is_zen(const struct gc_machine *m)
{
	char vendor[FACTS_NAME], fam[FACTS_NAME];

	return facts_label(m->root, "proc/cpuinfo", "vendor_id", vendor, sizeof(vendor)) > 0 &&
	       !strcmp(vendor, "AuthenticAMD") &&
	       facts_label(m->root, "proc/cpuinfo", "cpu family", fam, sizeof(fam)) > 0 &&
	       strtoul(fam, NULL, 10) >= ZEN;
}

/* Vendor and device of the function that stands for the host bridge of a complex */
static void host_bridge(const struct gc_machine *m, const struct facts_pci *p, char *address,
			size_t len, unsigned int *vendor, unsigned int *device)
{
	char text[FACTS_NAME];

	*vendor = *device = 0;
	snprintf(address, len, "%s:00.0", p->complex + strlen("pci"));
	if (facts_pci_text(m->root, address, "vendor", text, sizeof(text)) > 0)
		*vendor = (unsigned int)strtoul(text, NULL, 16);
	if (facts_pci_text(m->root, address, "device", text, sizeof(text)) > 0)
		*device = (unsigned int)strtoul(text, NULL, 16);
}

static enum forwards bridge_kind(unsigned int vendor, unsigned int device)
{
	size_t i;

	if (vendor == GOOGLE)
		return FORWARDS;
	if (vendor != INTEL)
		return NOT_KNOWN;
	for (i = 0; i < sizeof(intel_servers) / sizeof(intel_servers[0]); i++)
		if (intel_servers[i].device == device)
			return intel_servers[i].how;
	return WRITES_ONLY;
}

static void forwarding(const struct gc_machine *m, struct gc_finding *f)
{
	const struct gc_pair *p = farthest(m);
	char address[FACTS_NAME];
	unsigned int vendor, device;
	enum forwards how;

	if (!has_pair(m, f))
		return;
	if (p->way.kind == FACTS_WAY_SWITCH) {
		gc_say(f, GC_OK, "the bytes do not pass the host bridge");
		gc_seen(f, "sys/bus/pci/devices", "%s hands them on", p->way.at);
		return;
	}
	if (is_zen(m)) {
		gc_say(f, GC_OK, "the host bridges of this AMD processor forward");
		gc_seen(f, "proc/cpuinfo", "AuthenticAMD, family 0x17 or later");
		return;
	}
	host_bridge(m, p->gpu->pci, address, sizeof(address), &vendor, &device);
	gc_seen(f, "sys/bus/pci/devices", "%s: %04x:%04x", address, vendor, device);
	how = bridge_kind(vendor, device);
	if (how == FORWARDS || (how == SAME_ONLY && p->way.kind != FACTS_WAY_FAR)) {
		gc_say(f, GC_OK, "this host bridge is known to forward");
		return;
	}
	if (how == WRITES_ONLY) {
		gc_say(f, GC_WARN, "an Intel host bridge that is no server's: reads from disk may work, writes to disk fail or store 0xff");
		gc_remedy(f, "trust a direction that gdscheck --prove FILE has shown; use a board with a PCIe switch for both");
		return;
	}
	gc_say(f, GC_WARN, "nobody is known to have tried whether this host bridge forwards");
	gc_remedy(f, "try both directions: gdscheck --prove FILE");
}

/* -- links -- */

struct link {
	unsigned int width, max_width;
	char speed[FACTS_NAME], max_speed[FACTS_NAME];	/* "16.0 GT/s PCIe" */
};

static bool link_of(const struct gc_machine *m, const char *address, struct link *l)
{
	char text[FACTS_NAME];

	if (facts_pci_text(m->root, address, "current_link_width", text, sizeof(text)) <= 0)
		return false;
	l->width = (unsigned int)strtoul(text, NULL, 10);
	if (facts_pci_text(m->root, address, "max_link_width", text, sizeof(text)) <= 0)
		return false;
	l->max_width = (unsigned int)strtoul(text, NULL, 10);
	if (facts_pci_text(m->root, address, "current_link_speed", l->speed, sizeof(l->speed)) < 0 ||
	    facts_pci_text(m->root, address, "max_link_speed", l->max_speed, sizeof(l->max_speed)) < 0)
		return false;
	return l->width && l->max_width && l->max_width < 255;
}

/* The part of the machine that the bytes of a pair use: the functions, and what is above them */
static size_t on_the_way(const struct gc_machine *m, const struct gc_pair *p,
			 const struct facts_pci **out, size_t max)
{
	const struct facts_pci *ends[2] = { p->gpu->pci, p->drive }, *at;
	size_t n = 0, left;
	int i;

	for (i = 0; i < 2; i++)
		for (at = ends[i], left = CLIMB; at && left && n < max; left--) {
			out[n++] = at;
			at = at->parent[0] ? gc_pci(m, at->parent) : NULL;
		}
	return n;
}

static void links(const struct gc_machine *m, struct gc_finding *f)
{
	const struct facts_pci *way[2 * CLIMB];
	struct link l, least = { 0 };
	const struct facts_pci *at = NULL;
	unsigned int i;
	size_t n, j;

	if (!has_pair(m, f))
		return;
	for (i = 0; i < m->gpus; i++) {
		n = on_the_way(m, &m->pair[i], way, 2 * CLIMB);
		for (j = 0; j < n; j++) {
			/* a port may have more lanes than the card in it: ends are judged */
			if (!link_of(m, way[j]->address, &l) ||
			    (way[j]->kind != FACTS_PCI_GPU && way[j]->kind != FACTS_PCI_NVME))
				continue;
			if (!at || l.width * least.max_width < least.width * l.max_width) {
				at = way[j];
				least = l;
			}
		}
	}
	if (!at) {
		gc_say(f, GC_SKIP, "the links of GPU and drive have no width here");
		return;
	}
	gc_seen(f, "sys/bus/pci/devices", "%s: x%u of x%u, %s of %s", at->address, least.width,
		least.max_width, least.speed, least.max_speed);
	if (least.width == least.max_width) {
		gc_say(f, GC_OK, "GPU and drive have all their lanes");
		gc_note(f, "the speed of an idle GPU's link is lower; gdsio shows it under load");
		return;
	}
	gc_say(f, GC_WARN, "%s %s runs at x%u of x%u", at->kind == FACTS_PCI_GPU ? "GPU" : "drive",
	       at->address, least.width, least.max_width);
	gc_remedy(f, "use a slot with all lanes; reseat the card; check bifurcation in the BIOS (a riser of four lanes, as OCuLink and M.2 have, works at x4 and cannot do more)");
}

/* "TOTAL_ERR_COR 12" */
static long total_errors(const struct gc_machine *m, const char *address, const char *file,
			 const char *label)
{
	char text[2048];
	const char *at;

	if (facts_pci_text(m->root, address, file, text, sizeof(text)) <= 0)
		return -1;
	at = strstr(text, label);
	return at ? strtol(at + strlen(label), NULL, 10) : -1;
}

/* The first function of the machine's ways that has errors of a kind; *any: some count them */
static bool worst_link(const struct gc_machine *m, const char *file, const char *label,
		       char *address, long *count, bool *any)
{
	const struct facts_pci *way[2 * CLIMB];
	unsigned int i;
	size_t n, j;

	for (i = 0; i < m->gpus; i++) {
		n = on_the_way(m, &m->pair[i], way, 2 * CLIMB);
		for (j = 0; j < n; j++) {
			*count = total_errors(m, way[j]->address, file, label);
			*any |= *count >= 0;
			if (*count <= 0)
				continue;
			memcpy(address, way[j]->address, FACTS_PCI_ADDRESS);
			return true;
		}
	}
	return false;
}

static void link_errors(const struct gc_machine *m, struct gc_finding *f)
{
	static const struct { const char *file, *label, *what; } kinds[] = {
		{ "aer_dev_fatal", "TOTAL_ERR_FATAL", "fatal" },
		{ "aer_dev_nonfatal", "TOTAL_ERR_NONFATAL", "uncorrected" },
		{ "aer_dev_correctable", "TOTAL_ERR_COR", "corrected" },
	};
	char address[FACTS_PCI_ADDRESS];
	unsigned int k;
	bool any = false;
	long count;

	if (!has_pair(m, f))
		return;
	for (k = 0; k < 3; k++) {
		if (!worst_link(m, kinds[k].file, kinds[k].label, address, &count, &any))
			continue;
		gc_say(f, GC_WARN, "%ld %s PCIe errors at %s since boot", count, kinds[k].what,
		       address);
		gc_seen(f, "sys/bus/pci/devices", "%s/%s: %s %ld", address, kinds[k].file,
			kinds[k].label, count);
		gc_remedy(f, "see whether they grow under load; a shorter riser or cable, or a lower generation in the BIOS, ends them");
		return;
	}
	if (!any)
		gc_say(f, GC_SKIP, "the kernel counts no PCIe errors here (AER)");
	else
		gc_say(f, GC_OK, "no PCIe error since boot");
	gc_seen(f, "sys/bus/pci/devices", any ? "aer_dev_*: 0" : "no aer_dev_*");
}

static void external(const struct gc_machine *m, struct gc_finding *f)
{
	const struct facts_pci *way[2 * CLIMB];
	char text[FACTS_NAME];
	unsigned int i;
	size_t n, j;

	if (!has_pair(m, f))
		return;
	for (i = 0; i < m->gpus; i++) {
		n = on_the_way(m, &m->pair[i], way, 2 * CLIMB);
		for (j = 0; j < n; j++) {
			if (facts_pci_text(m->root, way[j]->address, "removable", text,
					   sizeof(text)) < 0 ||
			    strcmp(text, "removable"))
				continue;
			gc_say(f, GC_FAIL, "%s is behind an external port (Thunderbolt, USB4): the kernel lets it reach nothing but memory given to it",
			       way[j]->address);
			gc_seen(f, "sys/bus/pci/devices", "%s/removable: %s", way[j]->address, text);
			gc_remedy(f, "connect it by OCuLink, M.2 or a slot");
			return;
		}
	}
	gc_say(f, GC_OK, "GPU and drive are inside the machine");
	gc_seen(f, "sys/bus/pci/devices", "no function is removable");
}

const struct gc_check gc_checks_pcie[] = {
	{ "D-47", "ACS", acs, 62 },
	{ "D-48", "distance", distance, 80 },
	{ "D-49", "host bridge", forwarding, 61 },
	{ "D-50", "link", links, 71 },
	{ "D-51", "link errors", link_errors, 72 },
	{ "D-52", "external port", external, 25 },
};
const size_t gc_n_pcie = sizeof(gc_checks_pcie) / sizeof(gc_checks_pcie[0]);
