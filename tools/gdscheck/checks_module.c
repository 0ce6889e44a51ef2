// SPDX-License-Identifier: MIT
/*
 * checks_module.c - D-20 .. D-35: nvidia-fs, its way to the drive, and what proves a path.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gdscheck.h"
#include "read.h"

#define DIR "proc/driver/nvidia-fs/"
#define NODES_MAX 16	/* nodes of the module */
#define CROSS 127	/* distance from which on no bridge is common */

static bool has_module(const struct gc_machine *m, struct gc_finding *f)
{
	if (m->nvfs_err)
		gc_say(f, GC_SKIP, "nvidia-fs is not loaded");
	return !m->nvfs_err;
}

static void loaded(const struct gc_machine *m, struct gc_finding *f)
{
	char version[FACTS_NAME];

	if (m->nvfs_err == -ENODEV && facts_there(m->root, "sys/module", "nvidia_fs")) {
		gc_say(f, GC_SKIP, "nvidia-fs is loaded, but its files cannot be seen (D-71)");
		return;
	}
	if (m->nvfs_err) {
		gc_say(f, GC_FAIL, m->nvfs_err == -ENODEV ? "the module nvidia-fs is not loaded" :
		       "the module nvidia-fs says nothing that can be read");
		gc_seen(f, DIR "version", "%s", strerror(m->nvfs_err == -ENODEV ? ENOENT : -m->nvfs_err));
		gc_remedy(f, "modprobe nvidia-fs; if there is no such module, look at its DKMS build: dkms status");
		return;
	}
	if (facts_read(m->root, "sys/module/nvidia_fs/version", version, sizeof(version)) < 0)
		snprintf(version, sizeof(version), "%u.%u", m->nvfs.major, m->nvfs.minor);
	gc_say(f, GC_OK, "nvidia-fs %s, %s", version, m->nvfs.ours ? "OpenGDS" : "NVIDIA's");
	gc_seen(f, DIR "version", "%u.%u", m->nvfs.major, m->nvfs.minor);
}

static void nodes(const struct gc_machine *m, struct gc_finding *f)
{
	unsigned int i;
	char path[32];
	int mode = 0;

	if (!has_module(m, f))
		return;
	for (i = 0; i < m->nvfs.devcount && i < NODES_MAX; i++) {
		snprintf(path, sizeof(path), "dev/nvidia-fs%u", i);
		mode = facts_mode(m->root, path);
		if (mode < 0 || (mode & 0666) != 0666)
			break;
	}
	if (i && (i == m->nvfs.devcount || i == NODES_MAX)) {
		gc_say(f, GC_OK, "%u node%s, open to every user", i, i > 1 ? "s" : "");
		gc_seen(f, path, "mode %04o", (unsigned int)mode);
		return;
	}
	if (mode < 0 || !m->nvfs.devcount) {
		gc_say(f, GC_FAIL, "the node /dev/nvidia-fs%u is not there", i);
		gc_seen(f, m->nvfs.devcount ? path : DIR "devcount", "%s",
			m->nvfs.devcount ? strerror(-mode) : "0");
		gc_remedy(f, "in a container pass the nodes in (--device /dev/nvidia-fs0 ...); else rmmod nvidia-fs; modprobe nvidia-fs");
		return;
	}
	gc_say(f, GC_WARN, "/%s is not open to every user", path);
	gc_seen(f, path, "mode %04o", (unsigned int)mode);
	gc_remedy(f, "add the users to the node's group, or load the module with dev_mode=0666");
}

static void built_for(const struct gc_machine *m, struct gc_finding *f)
{
	static const char *const complaints[] = {
		"disagrees about version of symbol", "no symbol version for nvidia_p2p",
		"Unknown symbol nvidia_p2p",
	};
	const char *words[] = { "nvidia_fs", NULL, NULL };
	char line[GC_TEXT];
	int i, found = 0;

	for (i = 0; i < 3 && !found; i++) {
		words[1] = complaints[i];
		found = gc_kmsg(m, words, line, sizeof(line));
	}
	if (found < 0) {
		gc_say(f, GC_SKIP, "the kernel's log cannot be read: %s", strerror(-found));
		return;
	}
	if (!found) {
		if (m->nvfs_err)
			gc_say(f, GC_SKIP, "nvidia-fs is not loaded, and the kernel's log does not say why");
		else
			gc_say(f, GC_OK, "nvidia-fs was built for this kernel and GPU driver");
		gc_seen(f, "dev/kmsg", "no complaint about symbols of nvidia_fs");
		return;
	}
	gc_say(f, GC_FAIL, "nvidia-fs was built for another GPU driver");
	gc_seen(f, "dev/kmsg", "%s", line);
	gc_remedy(f, "build it again against the installed driver (dkms install --force nvidia-fs/VERSION), then rmmod nvidia-fs; modprobe nvidia-fs");
}

/* Drives are reached by the hook of the nvme driver, or by P2PDMA carriers of our module. */
static void hook_symbol(const struct gc_machine *m, struct gc_finding *f)
{
	const int64_t both = 1 << GC_SYM_NVME_V1 | 1 << GC_SYM_NVME_V2;
	char file[FACTS_PATH];

	if (m->symbols < 0) {
		gc_say(f, GC_SKIP, "the symbols of the kernel cannot be read: %s", strerror((int)-m->symbols));
		return;
	}
	if (m->symbols & both) {
		gc_say(f, GC_OK, "the nvme driver has the hook");
		gc_seen(f, "proc/kallsyms", "nvme_v%d_register_nvfs_dma_ops",
			m->symbols & 1 << GC_SYM_NVME_V2 ? 2 : 1);
		return;
	}
	gc_seen(f, "proc/kallsyms", "no nvme_v1_ or nvme_v2_register_nvfs_dma_ops");
	if (m->p2pdma_used) {
		gc_say(f, GC_OK, "a stock nvme driver, which is enough: the module has P2PDMA carriers");
		gc_note(f, "NVIDIA's module needs an nvme driver with the hook");
		return;
	}
	if (m->nvfs_err && gc_kconfig(m, "CONFIG_PCI_P2PDMA", file, sizeof(file)) == 'y') {
		gc_say(f, GC_OK, "a stock nvme driver, which is enough for the nvidia-fs of OpenGDS on this kernel");
		return;
	}
	gc_say(f, GC_FAIL, "a stock nvme driver without the hook, and no P2PDMA carriers (%s)",
	       m->nvfs_err ? "the kernel has no P2PDMA" :
	       !m->nvfs.ours ? "NVIDIA's nvidia-fs has none" : m->p2pdma_why);
	gc_remedy(f, "install the nvme hook (docs/nvme-hook.md), or a kernel with CONFIG_PCI_P2PDMA and the nvidia-fs of OpenGDS");
}

/* 2.28.2: major, minor, patch of a module that knows the iterator form of the hook */
static bool knows_v2(const char *version)
{
	unsigned int a = 0, b = 0, c = 0;

	sscanf(version, "%u.%u.%u", &a, &b, &c);
	return a > 2 || (a == 2 && (b > 28 || (b == 28 && c >= 2)));
}

static void generation(const struct gc_machine *m, struct gc_finding *f)
{
	char version[FACTS_NAME];

	if (!has_module(m, f))
		return;
	if (m->symbols < 0 || !(m->symbols & (1 << GC_SYM_NVME_V1 | 1 << GC_SYM_NVME_V2))) {
		gc_say(f, GC_SKIP, "no hook is known to be in the nvme driver");
		return;
	}
	if (facts_read(m->root, "sys/module/nvidia_fs/version", version, sizeof(version)) < 0)
		snprintf(version, sizeof(version), "%u.%u", m->nvfs.major, m->nvfs.minor);
	gc_seen(f, "sys/module/nvidia_fs/version", "%s", version);
	if (m->nvfs.ours || m->symbols & 1 << GC_SYM_NVME_V1 || knows_v2(version)) {
		gc_say(f, GC_OK, "nvidia-fs %s knows this generation of the hook", version);
		return;
	}
	gc_say(f, GC_FAIL, "the nvme driver has the hook of generation 2, which nvidia-fs %s does not know", version);
	gc_remedy(f, "install nvidia-fs 2.28.2 or later, or the one of OpenGDS, which knows both");
}

static void attached(const struct gc_machine *m, struct gc_finding *f)
{
	if (!has_module(m, f))
		return;
	gc_seen(f, DIR "modules", m->hook_attached ? "nvme" : "no line nvme");
	if (m->hook_attached) {
		gc_say(f, GC_OK, "nvidia-fs is attached to the nvme driver");
		return;
	}
	if (m->nvfs.ours && m->hook_why[0])
		gc_seen(f, DIR "opengds", "driver nvme: %s", m->hook_why);
	if (m->p2pdma_used) {
		gc_say(f, GC_OK, "P2PDMA carriers reach the drives; the hook is not needed");
		return;
	}
	gc_say(f, GC_FAIL, "nvidia-fs is not attached to the nvme driver: no request reaches a drive directly");
	gc_remedy(f, m->symbols > 0 && m->symbols & 3 ?
		  "load nvidia-fs again: rmmod nvidia-fs; modprobe nvidia-fs" :
		  "the nvme driver that runs has no hook: put the patched one into the initramfs and reboot");
}

static void pin_api(const struct gc_machine *m, struct gc_finding *f)
{
	char text[FACTS_NAME];

	if (!has_module(m, f))
		return;
	if (facts_read(m->root, "sys/module/nvidia_fs/parameters/use_legacy_p2p_allocation", text,
		       sizeof(text)) < 0)
		snprintf(text, sizeof(text), "not told");
	gc_seen(f, "sys/module/nvidia_fs/parameters/use_legacy_p2p_allocation", "%s", text);
	gc_say(f, GC_OK, "pins %s", !strcmp(text, "0") || !strcmp(text, "N") ? "are persistent" :
	       "by the call with a free callback, or as the module chooses");
}

struct distance {
	unsigned int least;
	bool any;
};

static int distance_line(void *arg, char *line)
{
	struct distance *d = arg;
	char gpu[64], peer[64], class[32];
	unsigned int rank, dist;

	if (sscanf(line, "%63s %63s %x %x %*s %*s %*s %*s %31s", gpu, peer, &rank, &dist, class) != 5 ||
	    strcmp(class, "nvme"))
		return 0;
	if (!d->any || dist < d->least)
		d->least = dist;
	d->any = true;
	return 0;
}

static void affinity(const struct gc_machine *m, struct gc_finding *f)
{
	struct distance d = { 0 };

	if (!has_module(m, f))
		return;
	facts_lines(m->root, DIR "peer_distance", distance_line, &d);
	if (!d.any) {
		gc_say(f, GC_SKIP, "the module sees no GPU with a drive");
		return;
	}
	gc_seen(f, DIR "peer_distance", "nearest drive at 0x%04x", d.least);
	if (d.least < CROSS) {
		gc_say(f, GC_OK, "the nearest drive is %u steps from its GPU", d.least);
		return;
	}
	gc_say(f, GC_WARN, "the module sees every drive beyond the host bridge of every GPU");
	gc_remedy(f, "put a drive and a GPU below one switch or one root port");
}

/* -- what proves a path, and what does not -- */

static void capability(const struct gc_machine *m, struct gc_finding *f)
{
	gc_say(f, GC_SKIP, "what -p calls supported is a capability, no evidence; --prove gives that");
}

static void compat(const struct gc_machine *m, struct gc_finding *f)
{
	const uint32_t direct = 1u << 0 | 1u << 1 | 1u << 2;	/* nvfs, p2pdma, staged */
	const struct config *c = &m->config;

	gc_seen(f, c->path[0] ? c->path + (c->path[0] == '/') : "etc/cufile.json", "allow_compat_mode %s, force_compat_mode %s%s", c->allow_compat ? "true" : "false",
		c->force_compat ? "true" : "false", m->config_found ? "" : " (no file: defaults)");
	if (c->force_compat) {
		gc_say(f, GC_FAIL, "force_compat_mode is set: nothing goes direct");
		gc_remedy(f, "set properties.force_compat_mode to false");
	} else if (!(c->routes & direct)) {
		gc_say(f, GC_FAIL, "opengds.routes leaves all direct routes out");
		gc_remedy(f, "add nvfs and staged to opengds.routes, or remove the key");
	} else if (c->allow_compat && !c->strict) {
		gc_say(f, GC_OK, "other routes are allowed; gdsio and gds_stats tell which were taken");
		gc_note(f, "NVIDIA's library falls back without a word; set allow_compat_mode to false while you test it");
	} else {
		gc_say(f, GC_OK, "what cannot go direct fails, and says so");
	}
}

static void pin_probe(const struct gc_machine *m, struct gc_finding *f)
{
	gc_say(f, GC_SKIP, "a pin needs GPU memory; --prove takes some");
}

static void io_probe(const struct gc_machine *m, struct gc_finding *f)
{
	gc_say(f, GC_SKIP, "needs real I/O: --prove reads and writes both ways, and counts");
}

static void depth(const struct gc_machine *m, struct gc_finding *f)
{
	gc_say(f, GC_SKIP, "more speed with more requests is no evidence: bounced I/O scales, too");
}

static void page_cache(const struct gc_machine *m, struct gc_finding *f)
{
	gc_say(f, GC_SKIP, "speed above the link's is the page cache; only a run can tell");
}

const struct gc_check gc_checks_module[] = {
	{ "D-20", "nvidia-fs", loaded, 30 },
	{ "D-21", "nodes", nodes, 31 },
	{ "D-22", "build", built_for, 29 },
	{ "D-23", "nvme hook", hook_symbol, 33 },
	{ "D-24", "hook generation", generation, 34 },
	{ "D-25", "hook in use", attached, 35 },
	{ "D-26", "pin interface", pin_api, 99 },
	{ "D-27", "distance", affinity, 81 },
};
const size_t gc_n_module = sizeof(gc_checks_module) / sizeof(gc_checks_module[0]);

const struct gc_check gc_checks_path[] = {
	{ "D-30", "capability", capability, 99 },
	{ "D-31", "fallback", compat, 40 },
	{ "D-32", "pin", pin_probe, 99 },
	{ "D-33", "real I/O", io_probe, 99 },
	{ "D-34", "queue depth", depth, 99 },
	{ "D-35", "page cache", page_cache, 99 },
};
const size_t gc_n_path = sizeof(gc_checks_path) / sizeof(gc_checks_path[0]);
