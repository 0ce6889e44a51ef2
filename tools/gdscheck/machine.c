// SPDX-License-Identifier: MIT
/*
 * machine.c - the facts that several checks need, read once.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gdscheck.h"
#include "read.h"

#define CONFIG_ROOM (1024 * 1024)

static void format(char *to, const char *fmt, va_list ap)
{
	vsnprintf(to, GC_TEXT, fmt, ap);
}

void gc_say(struct gc_finding *f, enum gc_verdict v, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	f->verdict = v;
	format(f->text, fmt, ap);
	va_end(ap);
}

void gc_seen(struct gc_finding *f, const char *file, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	snprintf(f->file, sizeof(f->file), "/%s", file);
	format(f->value, fmt, ap);
	va_end(ap);
}

void gc_remedy(struct gc_finding *f, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	format(f->remedy, fmt, ap);
	va_end(ap);
}

void gc_note(struct gc_finding *f, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	format(f->note, fmt, ap);
	va_end(ap);
}

const struct facts_pci *gc_pci(const struct gc_machine *m, const char *address)
{
	size_t i;

	for (i = 0; i < m->npci; i++)
		if (!strcmp(m->pci[i].address, address))
			return &m->pci[i];
	return NULL;
}

bool gc_has_gpu(const struct gc_machine *m, struct gc_finding *f)
{
	if (!m->gpus)
		gc_say(f, GC_SKIP, "there is no GPU");
	return m->gpus;
}

/* -- GPUs -- */

/* BAR1: the largest one, and where it is */
static void bar1(const struct gc_machine *m, struct gc_gpu *g)
{
	uint64_t start, bytes;
	unsigned int i;

	if (facts_pci_bar1(m->root, g->pci->address, &g->bar1))
		return;
	for (i = 0; i < 6; i++)
		if (!facts_pci_bar(m->root, g->pci->address, i, &start, &bytes) &&
		    bytes == g->bar1)
			g->bar1_bus = start;
}

static void gpus(struct gc_machine *m)
{
	struct gc_gpu *g;
	char text[FACTS_NAME];
	size_t i;

	m->simulated = true;
	for (i = 0; i < m->npci && m->gpus < GC_GPUS; i++) {
		if (m->pci[i].kind != FACTS_PCI_GPU)
			continue;
		g = &m->gpu[m->gpus++];
		g->pci = &m->pci[i];
		if (facts_gpu_info(m->root, g->pci->address, "Model", g->model, sizeof(g->model)) < 0)
			g->model[0] = '\0';
		bar1(m, g);
		m->simulated &= facts_pci_text(m->root, g->pci->address, "gpu_sim/uuid", text,
					       sizeof(text)) >= 0;
	}
	m->simulated &= m->gpus > 0;
}

/* -- settings of the GPU driver -- */

struct modprobe {
	struct gc_machine *m;
	char path[FACTS_PATH];
};

/* What follows NAME= in a line of modprobe.d, quotes aside, up to the end of the word */
static void setting(const char *line, const char *name, const struct modprobe *p, char *to,
		    size_t len, char *from)
{
	const char *at = strstr(line, name);
	size_t n;
	char end;

	if (!at || at[strlen(name)] != '=')
		return;
	at += strlen(name) + 1;
	end = *at == '"' ? '"' : ' ';
	at += *at == '"';
	n = strcspn(at, end == '"' ? "\"" : " \t");
	if (n >= len)
		return;
	memcpy(to, at, n);
	to[n] = '\0';
	snprintf(from, FACTS_PATH, "%s", p->path);
}

static int modprobe_line(void *arg, char *line)
{
	struct modprobe *p = arg;

	line += strspn(line, " \t");
	if (strncmp(line, "options", 7) || !strstr(line, "nvidia"))
		return 0;
	setting(line, "NVreg_RegistryDwords", p, p->m->registry_file,
		sizeof(p->m->registry_file), p->m->registry_from);
	setting(line, "NVreg_EnableGpuFirmware", p, p->m->firmware_file,
		sizeof(p->m->firmware_file), p->m->firmware_from);
	return 0;
}

static int modprobe_file(void *arg, const char *name)
{
	struct modprobe *p = arg;
	size_t n = strlen(name), dir = strlen(p->path);

	if (n < 5 || strcmp(name + n - 5, ".conf") || dir + n + 1 >= sizeof(p->path))
		return 0;
	memcpy(p->path + dir, name, n + 1);
	facts_lines(p->m->root, p->path, modprobe_line, p);
	p->path[dir] = '\0';
	return 0;
}

static void settings(struct gc_machine *m)
{
	static const char *const dirs[] = { "usr/lib/modprobe.d/", "etc/modprobe.d/" };
	struct modprobe p = { .m = m };
	size_t i;

	if (facts_label(m->root, "proc/driver/nvidia/params", "RegistryDwords", m->registry,
			sizeof(m->registry)) < 0)
		m->registry[0] = '\0';
	for (i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		snprintf(p.path, sizeof(p.path), "%s", dirs[i]);
		facts_entries(m->root, dirs[i], modprobe_file, &p);
	}
}

/* -- nvidia-fs and its ways to the drive -- */

static void module(struct gc_machine *m)
{
	static const char *const names[] = {
		[GC_SYM_NVME_V1] = "nvme_v1_register_nvfs_dma_ops",
		[GC_SYM_NVME_V2] = "nvme_v2_register_nvfs_dma_ops",
		[GC_SYM_P2PDMA_OPS] = "p2pdma_pgmap_ops",
	};
	static const char own[] = "proc/driver/nvidia-fs/opengds";
	char text[GC_TEXT];

	m->nvfs_err = facts_nvfs_find(m->root, &m->nvfs);
	m->symbols = facts_symbols(m->root, names, sizeof(names) / sizeof(names[0]));
	m->hook_attached = facts_label(m->root, "proc/driver/nvidia-fs/modules", "nvme", text,
				       sizeof(text)) >= 0;
	if (facts_label(m->root, own, "driver nvme", m->hook_why, sizeof(m->hook_why)) < 0)
		m->hook_why[0] = '\0';
	if (facts_label(m->root, own, "p2pdma", m->p2pdma_why, sizeof(m->p2pdma_why)) < 0)
		m->p2pdma_why[0] = '\0';
	m->p2pdma_used = !strncmp(m->p2pdma_why, "used", 4);
}

/* -- which drive is nearest to each GPU -- */

/* True when the drive is below a file system that can go direct, or when there is no such one */
static bool counts(const struct gc_machine *m, const struct facts_pci *drive, bool any)
{
	unsigned int i, j;

	for (i = 0; !any && i < m->stores; i++)
		for (j = 0; gc_store_good(m, &m->store[i]) && j < m->store[i].leaves; j++)
			if (!strcmp(m->store[i].leaf[j].pci, drive->address))
				return true;
	return any;
}

static void nearest(struct gc_machine *m, struct gc_pair *p, bool any)
{
	struct facts_way way;
	size_t i;

	for (i = 0; i < m->npci; i++) {
		if (m->pci[i].kind != FACTS_PCI_NVME || !counts(m, &m->pci[i], any))
			continue;
		facts_way(m->root, m->pci, m->npci, p->gpu->pci, &m->pci[i], &way);
		if (p->drive && way.kind >= p->way.kind)
			continue;
		p->drive = &m->pci[i];
		p->way = way;
	}
}

static void pairs(struct gc_machine *m)
{
	unsigned int i;

	for (i = 0; i < m->gpus; i++) {
		m->pair[i].gpu = &m->gpu[i];
		nearest(m, &m->pair[i], false);
		if (!m->pair[i].drive)
			nearest(m, &m->pair[i], true);
	}
}

/* -- the configuration -- */

/* A recorded machine's, or this one's with what the environment says */
static void configuration(struct gc_machine *m)
{
	char *text;
	int n;

	if (!m->recorded) {
		/* the recorder is to see that it was read */
		m->config_found = facts_there("", "etc", "cufile.json");
		config_load(&m->config, NULL, NULL);
		if (facts_seen)
			facts_seen("", "etc/cufile.json", FACTS_LOOK_FILE);
		return;
	}
	config_defaults(&m->config);
	text = malloc(CONFIG_ROOM);
	n = text ? facts_read(m->root, "etc/cufile.json", text, CONFIG_ROOM) : -ENOMEM;
	m->config_found = n >= 0;
	if (n > 0)
		config_parse(&m->config, "/etc/cufile.json", text, (size_t)n, NULL, NULL);
	free(text);
}

int gc_machine_read(struct gc_machine *m, const char *root, char *const *paths, size_t npaths)
{
	char full[FACTS_SYSFS_PATH];
	int n, r;

	memset(m, 0, sizeof(*m));
	m->root = root;
	m->recorded = root[0];
	r = facts_join(root, "proc", full, sizeof(full));
	if (!r && access(full, F_OK))
		r = -errno;
	if (r) {
		fprintf(stderr, "gdscheck: %s/proc: %s: no recorded machine is there; unpack its archive and name the folder\n",
			root, strerror(-r));
		return r;
	}
	n = facts_pci_tree(root, m->pci, GC_PCI);
	m->pci_err = n < 0 ? n : 0;
	m->npci = n < 0 ? 0 : (size_t)n;
	m->driver_err = facts_gpu_driver(root, &m->driver);
	if (facts_read(root, "proc/sys/kernel/osrelease", m->release, sizeof(m->release)) < 0)
		m->release[0] = '\0';
	gpus(m);
	settings(m);
	module(m);
	configuration(m);
	r = gc_stores_read(m, paths, npaths);
	if (r)
		return r;
	pairs(m);
	return 0;
}
