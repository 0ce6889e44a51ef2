// SPDX-License-Identifier: MIT
/*
 * peers.c - what a GPU's driver answers to a process that lists its memory for other drivers: the
 * life of the object, each step with its status. docs/geforce.md has the answers of the drivers
 * that were asked. No pin is asked for: that takes a module.
 *
 *	peers [GPU]
 *
 * Exit status: 0 when the steps that lib/peers.c takes were answered as it expects, else 1; 77
 * without a GPU.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "gpu.h"
#include "rm/rm.h"

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)

static int bad;

/* want < 0: whatever it is, it is told */
static void told(const char *what, int r, int want)
{
	bool ok = want < 0 || r == want;

	if (r < 0)
		printf("%-62s %s%s\n", what, strerror(-r), ok ? "" : "   UNEXPECTED");
	else
		printf("%-62s 0x%x%s\n", what, r, ok ? "" : "   UNEXPECTED");
	bad += !ok;
}

struct piece {
	const char *name;
	uint64_t size, va;
	struct rm_memory m;
	uint32_t object;
};

static void allocate(struct rm *rm, void *ctx, struct piece *p)
{
	unsigned char ipc[RM_IPC_BYTES];
	const char *step = "";
	char text[128];
	int r;

	r = gpu->alloc(ctx, p->size, &p->va);
	if (!r)
		r = gpu->ipc(ctx, p->va, ipc);
	if (!r)
		r = rm_memory_of(ipc, &p->m);
	snprintf(text, sizeof(text), "%s: handle of the allocation", p->name);
	told(text, r, 0);
	if (r)
		exit(1);
	printf("    at 0x%llx, 0x%llx in its object, which is %x of %x; size told 0x%llx\n",
	       (unsigned long long)p->va, (unsigned long long)p->m.off, p->m.object, p->m.client,
	       (unsigned long long)p->m.size);
	snprintf(text, sizeof(text), "%s: second name", p->name);
	told(text, rm_dup(rm, &p->m, &p->object, &step), 0);
}

static void list(struct rm *rm, const struct rm_peers *peers, const struct piece *p,
		 const char *how, uint64_t va, uint64_t len, uint64_t off, int want, bool keep)
{
	const char *step = "";
	char text[128];
	int r;

	snprintf(text, sizeof(text), "%s: list %s", p->name, how);
	r = rm_peers_register(rm, peers, p->object, va, len, off, &step);
	told(text, r, want);
	if (r || keep)
		return;
	snprintf(text, sizeof(text), "%s: take off", p->name);
	told(text, rm_peers_unregister(rm, peers, p->object, &step), 0);
}

/* The forms that lib/peers.c uses: whole GPU pages of a large object, all of a shared one. */
static void forms(struct rm *rm, const struct rm_peers *peers, const struct piece *p)
{
	uint64_t from = p->va - p->m.off, end = p->m.off + p->size;
	uint64_t len = end <= 2 * MIB ? 2 * MIB : (end + 64 * KIB - 1) & ~(64 * KIB - 1);

	list(rm, peers, p, "just the allocation", p->va, p->size, p->m.off, -1, false);
	list(rm, peers, p, "its object", from, len, 0, 0, false);
	list(rm, peers, p, "4 KiB more than 2 MiB or 64-KiB pages", from, len + 4 * KIB, 0, -1,
	     false);
	list(rm, peers, p, "far more than there is", from, len + 64 * MIB, 0, -1, false);
}

static void twice(struct rm *rm, const struct rm_peers *peers, struct piece *p)
{
	uint64_t half = p->size / 2;
	const char *step = "";
	struct piece again = *p;

	list(rm, peers, p, "once", p->va, p->size, 0, 0, true);
	list(rm, peers, p, "by the same name again", p->va, p->size, 0, -1, true);
	list(rm, peers, p, "a half by the same name", p->va, half, 0, -1, true);
	told("another second name", rm_dup(rm, &p->m, &again.object, &step), 0);
	list(rm, peers, &again, "the same address by the other name", p->va, p->size, 0, -1, true);
	told("take off the other name", rm_peers_unregister(rm, peers, again.object, &step), -1);
	told("take it off", rm_peers_unregister(rm, peers, p->object, &step), 0);
	told("take it off again", rm_peers_unregister(rm, peers, p->object, &step), -1);
	rm_drop(rm, again.object);
}

/* Freed, and the address given out again: two entries of one address. */
static void reused(struct rm *rm, void *ctx, const struct rm_peers *peers)
{
	struct piece old = { .name = "freed", .size = 8 * MIB };
	struct piece now = { .name = "at its address", .size = 8 * MIB };
	const char *step = "";

	allocate(rm, ctx, &old);
	list(rm, peers, &old, "", old.va, old.size, 0, 0, true);
	gpu->free(ctx, old.va);
	allocate(rm, ctx, &now);
	printf("    the address is %s\n", now.va == old.va ? "the same" : "another one");
	list(rm, peers, &now, "while the old entry is there", now.va, now.size, 0, -1, true);
	told("take off the freed one", rm_peers_unregister(rm, peers, old.object, &step), 0);
	rm_peers_unregister(rm, peers, now.object, &step);
	list(rm, peers, &now, "once the old entry is gone", now.va, now.size, 0, 0, true);
	rm_drop(rm, now.object);
	told("take off what was dropped", rm_peers_unregister(rm, peers, now.object, &step), -1);
	rm_drop(rm, old.object);
	gpu->free(ctx, now.va);
}

int main(int argc, char **argv)
{
	struct piece piece[] = {
		{ .name = "16 MiB", .size = 16 * MIB },
		{ .name = "2 MiB", .size = 2 * MIB },
		{ .name = "3 MiB + 4 KiB", .size = 3 * MIB + 4 * KIB },
		{ .name = "4 KiB", .size = 4 * KIB },
		{ .name = "100 KiB beside it", .size = 100 * KIB },
	};
	int dev = argc > 1 ? atoi(argv[1]) : 0, r;
	struct rm_peers peers, second;
	char what[128], pci[32];
	const char *step = "";
	struct rm *rm, *other;
	uint64_t info;
	unsigned int i;
	void *ctx;

	if (gpu->open(what, sizeof(what)) || gpu->count() <= dev || gpu->primary_get(dev, &ctx)) {
		printf("no GPU %d: %s\n", dev, what);
		return 77;
	}
	if (gpu->pci(dev, &info, pci, sizeof(pci)))
		return 1;
	printf("GPU %s, user %u\n", pci, getuid());
	r = rm_open(pci, &rm, &step);
	told("client, device, subdevice", r, 0);
	if (r) {
		printf("    failed at: %s\n", step);
		return 1;
	}
	r = rm_peers_open(rm, &peers, &step);
	told("peers object, address space, both joined", r, 0);
	if (r) {
		printf("    failed at: %s\n", step);
		return 1;
	}
	r = rm_peers_open(rm, &second, &step);
	told("a second peers object of this client", r, -1);
	if (!r)
		rm_peers_close(rm, &second);
	for (i = 0; i < sizeof(piece) / sizeof(*piece); i++)
		allocate(rm, ctx, &piece[i]);
	for (i = 0; i < sizeof(piece) / sizeof(*piece); i++)
		forms(rm, &peers, &piece[i]);
	twice(rm, &peers, &piece[0]);
	reused(rm, ctx, &peers);

	r = rm_open(pci, &other, &step);
	told("another client", r, 0);
	if (!r) {
		struct piece p = piece[0];

		told("    its peers object", rm_peers_open(other, &second, &step), 0);
		told("    its second name", rm_dup(other, &p.m, &p.object, &step), 0);
		list(rm, &peers, &piece[0], "by the first client", p.va, p.size, 0, 0, true);
		list(other, &second, &p, "the same by the other client", p.va, p.size, 0, -1, true);
		told("take it off the first",
		     rm_peers_unregister(rm, &peers, piece[0].object, &step), 0);
		rm_close(other);	/* with an entry */
	}
	list(rm, &peers, &piece[0], "and left there, the object closed", piece[0].va, piece[0].size,
	     0, 0, true);
	rm_peers_close(rm, &peers);
	told("a new peers object", rm_peers_open(rm, &peers, &step), 0);
	list(rm, &peers, &piece[0], "by it", piece[0].va, piece[0].size, 0, 0, false);
	rm_close(rm);
	for (i = 0; i < sizeof(piece) / sizeof(*piece); i++)
		gpu->free(ctx, piece[i].va);
	gpu->primary_put(dev);
	printf("%d unexpected\n", bad);
	return bad != 0;
}
