// SPDX-License-Identifier: MIT
/*
 * checks_gpu.c - D-01 .. D-14: the GPU driver, its settings, the card.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gdscheck.h"
#include "read.h"

#define VERSION "proc/driver/nvidia/version"
#define PARAMS "proc/driver/nvidia/params"

#define SMALL_BAR1 (256ULL << 20)	/* bytes: what a card has without resizable BAR */

/* A change of the meaning of a value, and of a default: versions of the GPU driver */
#define TYPES_RENUMBERED 575
#define STATIC_BAR1_AUTO 580

/* False, and SKIP: there is no card of NVIDIA's, or no driver for it */
static bool has_driver(const struct gc_machine *m, struct gc_finding *f)
{
	if (!gc_has_gpu(m, f))
		return false;
	if (m->simulated)
		gc_say(f, GC_SKIP, "the card is a simulated one");
	else if (m->driver_err)
		gc_say(f, GC_SKIP, "the GPU driver is not loaded");
	return !m->simulated && !m->driver_err;
}

static bool geforce(const struct gc_gpu *g)
{
	return strstr(g->model, "GeForce");
}

static const struct gc_gpu *any_geforce(const struct gc_machine *m)
{
	unsigned int i;

	for (i = 0; i < m->gpus; i++)
		if (geforce(&m->gpu[i]))
			return &m->gpu[i];
	return NULL;
}

static void information(char *path, size_t len, const struct gc_gpu *g)
{
	snprintf(path, len, "proc/driver/nvidia/gpus/%s/information", g->pci->address);
}

static void flavour(const struct gc_machine *m, struct gc_finding *f)
{
	if (!gc_has_gpu(m, f))
		return;
	if (m->simulated) {
		gc_say(f, GC_SKIP, "the card is a simulated one");
		return;
	}
	if (m->driver_err) {
		gc_say(f, GC_FAIL, "no GPU driver is loaded");
		gc_seen(f, VERSION, "%s", strerror(m->driver_err == -ENODEV ? ENOENT : -m->driver_err));
		gc_remedy(f, "install the open kernel modules of NVIDIA's driver, 570 or later, and load them: modprobe nvidia");
		return;
	}
	gc_seen(f, VERSION, "%s, %s", m->driver.version,
		m->driver.open ? "Open Kernel Module" : "not the open flavour");
	if (m->driver.open) {
		gc_say(f, GC_OK, "open kernel modules %s", m->driver.version);
		return;
	}
	gc_remedy(f, "install the open kernel modules of version %s (package names end in -open)",
		  m->driver.version);
	if (any_geforce(m))
		gc_say(f, GC_FAIL, "closed kernel modules: what a GeForce needs exists in the open ones only");
	else
		gc_say(f, GC_WARN, "closed kernel modules: nvidia-fs works with them, P2PDMA and stores through BAR1 were not tried");
}

static void same_version(const struct gc_machine *m, struct gc_finding *f)
{
	char version[FACTS_NAME], path[FACTS_PATH];

	if (!has_driver(m, f))
		return;
	if (facts_libcuda(m->root, version, sizeof(version), path, sizeof(path))) {
		gc_say(f, GC_WARN, "libcuda.so.1 is in none of the usual folders");
		gc_seen(f, "usr/lib", "no libcuda.so.1");
		gc_remedy(f, "install the user-space part of driver %s", m->driver.version);
		return;
	}
	gc_seen(f, path, "libcuda %s, kernel modules %s", version, m->driver.version);
	/* a link of two steps names the library by its short name */
	if (!strcmp(version, m->driver.version) || !strchr(version, '.')) {
		gc_say(f, GC_OK, "libcuda and the kernel modules are of one version");
		return;
	}
	gc_say(f, GC_FAIL, "libcuda is %s, the loaded kernel modules are %s: every CUDA call fails",
	       version, m->driver.version);
	gc_remedy(f, "reboot, so that the modules of the installed version are loaded; if it stays, install both from one package set");
}

static void bound(const struct gc_machine *m, struct gc_finding *f)
{
	char driver[FACTS_NAME], path[FACTS_PATH];
	unsigned int i;

	if (m->pci_err) {
		gc_say(f, GC_FAIL, "the PCI functions cannot be read");
		gc_seen(f, "sys/bus/pci/devices", "%s", strerror(-m->pci_err));
		gc_remedy(f, "mount /sys (in a container: do not mask it)");
		return;
	}
	if (!m->gpus) {
		gc_say(f, GC_FAIL, "there is no NVIDIA GPU on the PCI bus");
		gc_seen(f, "sys/bus/pci/devices", "no display function of vendor 10de");
		gc_remedy(f, "look for the card with lspci -d 10de: (slot, power, BIOS; in a virtual machine: passthrough)");
		return;
	}
	for (i = 0; i < m->gpus; i++) {
		snprintf(path, sizeof(path), "sys/bus/pci/devices/%s/driver", m->gpu[i].pci->address);
		if (facts_pci_target(m->root, m->gpu[i].pci->address, "driver", driver,
				   sizeof(driver)))
			snprintf(driver, sizeof(driver), "none");
		gc_seen(f, path, "%s", driver);
		if (!strcmp(driver, "nvidia") || m->simulated)
			continue;
		gc_say(f, GC_FAIL, "GPU %s is bound to driver %s", m->gpu[i].pci->address, driver);
		gc_remedy(f, "unbind it and load nvidia; blacklist %s if it takes the card at each boot", driver);
		return;
	}
	gc_say(f, GC_OK, "%u GPU%s bound to %s", m->gpus, m->gpus > 1 ? "s" : "", driver);
}

static void family(const struct gc_machine *m, struct gc_finding *f)
{
	const struct gc_gpu *g = any_geforce(m);
	const struct config *c = &m->config;
	char path[FACTS_PATH];

	/* a simulated card can be one, and answers as one */
	if (!(g && m->simulated) && !has_driver(m, f))
		return;
	information(path, sizeof(path), g ? g : &m->gpu[0]);
	gc_seen(f, path, "Model: %s", (g ? g : &m->gpu[0])->model);
	if (!g) {
		gc_say(f, GC_OK, "%s: libcuda makes its memory known to other modules",
		       m->gpu[0].model[0] ? m->gpu[0].model : "a card whose name cannot be read");
		return;
	}
	if (!c->register_peers) {
		gc_say(f, GC_FAIL, "%s: nvidia-fs can pin what the process lists and nothing else, and register_peers is false: each pin answers -22",
		       g->model);
		gc_seen(f, c->path[0] ? c->path + (c->path[0] == '/') : "etc/cufile.json",
			"opengds.register_peers: false");
		gc_remedy(f, "set opengds.register_peers to true, or remove the key; no kernel patch helps");
		return;
	}
	gc_say(f, GC_WARN, "%s: libcuda creates no third-party object for a GeForce, so nvidia-fs cannot pin its memory (-22) unless the process lists it, as the libcufile of OpenGDS does",
	       g->model);
	gc_remedy(f, "no kernel patch helps; use the libcufile of OpenGDS and see: gdscheck --prove FILE (docs/geforce.md)");
	gc_note(f, "NVIDIA supports GPUDirect on data-centre and workstation cards only");
}

static void gsp(const struct gc_machine *m, struct gc_finding *f)
{
	char path[FACTS_PATH], text[FACTS_NAME];
	unsigned int i;

	if (!has_driver(m, f))
		return;
	if (!m->driver.open) {
		gc_say(f, GC_SKIP, "the closed kernel modules may run without GSP");
		return;
	}
	for (i = 0; i < m->gpus; i++) {
		information(path, sizeof(path), &m->gpu[i]);
		if (facts_gpu_info(m->root, m->gpu[i].pci->address, "GPU Firmware", text,
				   sizeof(text)) > 0 &&
		    strcmp(text, "N/A"))
			continue;
		gc_say(f, GC_FAIL, "GPU %s runs without firmware, which the open kernel modules need",
		       m->gpu[i].pci->address);
		gc_seen(f, path, "no version in line GPU Firmware");
		gc_remedy(f, "install the firmware files of driver %s, then reload the modules",
			  m->driver.version);
		return;
	}
	gc_say(f, GC_OK, "the firmware (GSP) runs: %s", text);
	gc_seen(f, path, "GPU Firmware: %s", text);
}

/* A pair of the first list that the second one has not */
static bool missing(const char *want, const char *have, char *key, size_t len)
{
	unsigned long a, b;
	size_t n;

	for (; *want; want += n + (want[n] == ';')) {
		n = strcspn(want, ";");
		if (!memchr(want, '=', n))
			continue;
		snprintf(key, len, "%.*s", (int)strcspn(want, "="), want);
		if (!facts_registry(want, key, &a))
			continue;
		if (!facts_registry(have, key, &b) || a != b)
			return true;
	}
	return false;
}

static void registry(const struct gc_machine *m, struct gc_finding *f)
{
	char key[FACTS_NAME];

	if (!has_driver(m, f))
		return;
	gc_seen(f, PARAMS, "RegistryDwords: %s", m->registry);
	if (!missing(m->registry_file, m->registry, key, sizeof(key))) {
		gc_say(f, GC_OK, m->registry_file[0] ? "the registry keys of modprobe.d are in force" :
		       "no registry key is set in modprobe.d");
		return;
	}
	gc_say(f, GC_WARN, "%s of /%s is not in force", key, m->registry_from);
	gc_remedy(f, "rebuild the initramfs (update-initramfs -u, dracut -f or mkinitcpio -P) and reboot");
}

static void firmware_option(const struct gc_machine *m, struct gc_finding *f)
{
	char text[FACTS_NAME];

	if (!has_driver(m, f))
		return;
	if (m->firmware_file[0]) {
		gc_seen(f, m->firmware_from, "NVreg_EnableGpuFirmware=%s", m->firmware_file);
	} else {
		if (facts_label(m->root, PARAMS, "EnableGpuFirmware", text, sizeof(text)) < 0)
			snprintf(text, sizeof(text), "not set");
		gc_seen(f, PARAMS, "EnableGpuFirmware: %s", text);
	}
	if (!m->driver.open || !m->firmware_file[0] || strtol(m->firmware_file, NULL, 0)) {
		gc_say(f, GC_OK, "nobody tries to switch the firmware off");
		return;
	}
	gc_say(f, GC_WARN, "NVreg_EnableGpuFirmware=0 has no effect on the open kernel modules, although the driver repeats it");
	gc_remedy(f, "remove the option from /%s", m->firmware_from);
}

/* A key of the list in force, or else of the one that the next boot brings */
static bool key_set(const struct gc_machine *m, struct gc_finding *f, const char *key,
		    unsigned long *value)
{
	if (facts_registry(m->registry, key, value)) {
		gc_seen(f, PARAMS, "RegistryDwords: %s=0x%lx", key, *value);
		return true;
	}
	if (facts_registry(m->registry_file, key, value)) {
		gc_seen(f, m->registry_from, "%s=0x%lx", key, *value);
		return true;
	}
	gc_seen(f, PARAMS, "RegistryDwords: no %s", key);
	return false;
}

static void type_trap(const struct gc_machine *m, struct gc_finding *f)
{
	unsigned long v;

	if (!has_driver(m, f))
		return;
	if (!key_set(m, f, "RMForceP2PType", &v) || v != 2 || m->driver.major < TYPES_RENUMBERED) {
		gc_say(f, GC_OK, "no RMForceP2PType of another driver generation");
		return;
	}
	gc_say(f, GC_WARN, "RMForceP2PType=2 meant BAR1 up to 570; from %d on it means NVLink, and GPUs do not see each other over PCIe",
	       TYPES_RENUMBERED);
	gc_remedy(f, "remove the key, or set RMForceP2PType=1;RMPcieP2PType=1; rebuild the initramfs, reboot");
	gc_note(f, "storage does not depend on it");
}

static const struct gc_gpu *smallest_bar1(const struct gc_machine *m)
{
	const struct gc_gpu *g = NULL;
	unsigned int i;

	for (i = 0; i < m->gpus; i++)
		if (m->gpu[i].bar1 && (!g || m->gpu[i].bar1 < g->bar1))
			g = &m->gpu[i];
	return g;
}

static void static_bar1(const struct gc_machine *m, struct gc_finding *f)
{
	const struct gc_gpu *g = smallest_bar1(m);
	unsigned long v;

	if (!has_driver(m, f))
		return;
	if (!key_set(m, f, "RMForceStaticBar1", &v)) {
		gc_say(f, GC_OK, "RMForceStaticBar1 is not set; driver %u takes %s by itself",
		       m->driver.major, m->driver.major >= STATIC_BAR1_AUTO ? "auto" : "off");
		return;
	}
	if (v != 1 || !g || g->bar1 > SMALL_BAR1) {
		gc_say(f, GC_OK, "RMForceStaticBar1=%lu suits this BAR1", v);
		return;
	}
	gc_say(f, GC_FAIL, "RMForceStaticBar1=1 with a BAR1 of %llu MiB, smaller than the card's memory: the GPU does not start",
	       (unsigned long long)g->bar1 >> 20);
	gc_remedy(f, "set RMForceStaticBar1=2 (auto), rebuild the initramfs, reboot");
}

/* -- the driver's source, when somebody has edited it -- */

static const char *const hal[] = {
	"kbusGetBar1P2PDmaInfo_", "kbusCreateP2PMappingForBar1P2P_",
	"kbusRemoveP2PMappingForBar1P2P_", "kbusHasPcieBar1P2PMapping_",
	"kbusIsPcieBar1P2PMappingSupported_",
};

#define HAL (sizeof(hal) / sizeof(hal[0]))

struct source {
	const struct gc_machine *m;
	char file[FACTS_PATH];
	unsigned int arms[HAL], gh100[HAL];
	bool found;
};

static int source_line(void *arg, char *line)
{
	struct source *s = arg;
	const char *at;
	size_t i;

	if (!strchr(line, '=') || !strchr(line, '&'))
		return 0;
	for (i = 0; i < HAL; i++) {
		at = strstr(line, hal[i]);
		if (!at || at[-1] != '&')
			continue;
		s->arms[i]++;
		s->gh100[i] += !strncmp(at + strlen(hal[i]), "GH100", 5);
	}
	return 0;
}

static int source_tree(void *arg, const char *name)
{
	struct source *s = arg;
	char path[FACTS_PATH];

	if (strncmp(name, "nvidia", 6) || !strstr(name, s->m->driver.version))
		return 0;
	snprintf(path, sizeof(path), "usr/src/%s/src/nvidia/generated/g_kern_bus_nvoc.c", name);
	if (facts_lines(s->m->root, path, source_line, s) < 0)
		return 0;
	snprintf(s->file, sizeof(s->file), "%s", path);
	s->found = true;
	return 1;
}

static void patched(const struct gc_machine *m, struct gc_finding *f)
{
	struct source s = { .m = m };
	unsigned int i, all = 0, one = 0;

	if (!has_driver(m, f))
		return;
	facts_entries(m->root, "usr/src", source_tree, &s);
	if (!s.found) {
		gc_say(f, GC_SKIP, "/usr/src has no source of driver %s that could be edited",
		       m->driver.version);
		return;
	}
	for (i = 0; i < HAL; i++) {
		all += s.arms[i] == 2 && s.gh100[i] == 2;
		one += s.arms[i] == 2 && s.gh100[i] == 1;
	}
	gc_seen(f, s.file, "%u of %zu functions lead to GH100 on every chip", all, HAL);
	if (all + one != HAL || (all && one)) {
		gc_say(f, GC_WARN, "the driver's source is edited in part: neither as NVIDIA ships it nor one of the known sets");
		gc_remedy(f, "see which edits are there: gdspatch inspect /usr/src/...; then revert or apply them all");
		return;
	}
	gc_say(f, GC_OK, all ? "the driver's source has the BAR1 edits, complete" :
	       "the driver's source is as NVIDIA ships it");
	if (all)
		gc_note(f, "these edits are for GPU to GPU; storage does not depend on them");
}

static void power(const struct gc_machine *m, struct gc_finding *f)
{
	char state[FACTS_NAME], path[FACTS_PATH];
	unsigned int i;

	if (!gc_has_gpu(m, f))
		return;
	for (i = 0; i < m->gpus; i++) {
		snprintf(path, sizeof(path), "sys/bus/pci/devices/%s/power/runtime_status",
			 m->gpu[i].pci->address);
		if (facts_pci_text(m->root, m->gpu[i].pci->address, "power/runtime_status", state,
				   sizeof(state)) < 0)
			snprintf(state, sizeof(state), "not told");
		gc_seen(f, path, "%s", state);
		if (strncmp(state, "suspend", 7))
			continue;
		gc_say(f, GC_WARN, "GPU %s is suspended: the first pin waits for it or fails",
		       m->gpu[i].pci->address);
		gc_remedy(f, "keep it awake: enable nvidia-persistenced, or echo on > /sys/bus/pci/devices/%s/power/control",
			  m->gpu[i].pci->address);
		return;
	}
	gc_say(f, GC_OK, "no GPU is suspended");
}

static int instance(void *arg, const char *name)
{
	return !strncmp(name, "gi", 2);
}

static void confidential(const struct gc_machine *m, struct gc_finding *f)
{
	static const char *const guests[] = { "dev/tdx_guest", "dev/sev-guest" };
	char path[FACTS_PATH];
	unsigned int i;

	if (!has_driver(m, f))
		return;
	for (i = 0; i < 2; i++) {
		if (facts_mode(m->root, guests[i]) < 0)
			continue;
		gc_say(f, GC_WARN, "a confidential guest: in that mode the driver refuses third-party objects and pins");
		gc_seen(f, guests[i], "is there");
		gc_remedy(f, "switch the GPU's confidential computing mode off, or use the bounce route");
		return;
	}
	for (i = 0; i < m->gpus; i++) {
		snprintf(path, sizeof(path), "proc/driver/nvidia/capabilities/gpu%u/mig", i);
		gc_seen(f, path, "no instance");
		if (facts_entries(m->root, path, instance, NULL) <= 0)
			continue;
		gc_say(f, GC_WARN, "GPU %u is split into instances (MIG)", i);
		gc_seen(f, path, "has instances");
		gc_remedy(f, "try the instance with gdscheck --prove; nvidia-smi -i %u -mig 0 makes the card whole again", i);
		return;
	}
	gc_say(f, GC_OK, "neither confidential nor split into instances");
}

/* Settings that matter to others, told so that nobody looks for the cause there */
static void inform(const struct gc_machine *m, struct gc_finding *f, const char *key,
		   const char *what)
{
	unsigned long v;

	if (!has_driver(m, f))
		return;
	if (key_set(m, f, key, &v))
		gc_say(f, GC_OK, "%s=%lu: %s", key, v, what);
	else
		gc_say(f, GC_OK, "%s is not set, and need not be", key);
}

static void peer_override(const struct gc_machine *m, struct gc_finding *f)
{
	inform(m, f, "PeerMappingOverride", "for mappings of foreign devices; files do not need it");
}

static void topology_override(const struct gc_machine *m, struct gc_finding *f)
{
	inform(m, f, "GrdmaPciTopoCheckOverride",
	       "lifts the driver's own bar on chipsets that it does not know");
}

const struct gc_check gc_checks_gpu[] = {
	{ "D-01", "flavour", flavour, 20 },
	{ "D-02", "versions", same_version, 21 },
	{ "D-03", "card", bound, 10 },
	{ "D-04", "family", family, 60 },
	{ "D-05", "firmware", gsp, 22 },
	{ "D-06", "registry keys", registry, 89 },	/* no key is for storage */
	{ "D-07", "firmware option", firmware_option, 95 },
	{ "D-08", "RMForceP2PType", type_trap, 90 },
	{ "D-09", "static BAR1", static_bar1, 23 },
	{ "D-10", "driver source", patched, 91 },
	{ "D-11", "power", power, 70 },
	{ "D-12", "MIG", confidential, 58 },
	{ "D-13", "peer mapping", peer_override, 99 },
	{ "D-14", "topology check", topology_override, 99 },
};
const size_t gc_n_gpu = sizeof(gc_checks_gpu) / sizeof(gc_checks_gpu[0]);
