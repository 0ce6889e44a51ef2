// SPDX-License-Identifier: GPL-2.0-only
/*
 * btf_struct.c - layouts of a kernel's private structures, from the type information (BTF) of
 * its vmlinux, as #defines for a probe to assert. A program of the build, run by probe.sh.
 *
 *   btf_struct VMLINUX STRUCT...
 *
 * For each structure that is found: BTF_SIZEOF_<struct>, bytes, and BTF_<struct>_<member>, the
 * member's offset in bytes. VMLINUX is an ELF file with a section .BTF, or the bare section
 * (/sys/kernel/btf/vmlinux). Status 0 even when a structure is not there: its #defines are
 * missing then, and the probe fails.
 */
#include <elf.h>
#include <linux/types.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BTF_MAGIC 0xeb9f

struct btf_header {
	__u16 magic;
	__u8 version;
	__u8 flags;
	__u32 hdr_len;
	__u32 type_off;
	__u32 type_len;
	__u32 str_off;
	__u32 str_len;
};

struct btf_type {
	__u32 name;
	__u32 info;	/* bits 0-23 entries that follow, 24-30 kind, 31 flag of the kind */
	__u32 size;
};

struct btf_member {
	__u32 name;
	__u32 type;
	__u32 offset;	/* bits; with the flag of the kind in bits 0-23 only */
};

enum { KIND_STRUCT = 4, KIND_COUNT = 20 };

/* bytes after a struct btf_type of this kind: once, and for each entry */
static const struct {
	__u8 once, each;
} after[KIND_COUNT] = {
	[1] = { 4, 0 },		/* integer */
	[3] = { 12, 0 },	/* array */
	[4] = { 0, 12 },	/* structure */
	[5] = { 0, 12 },	/* union */
	[6] = { 0, 8 },		/* enumeration */
	[13] = { 0, 8 },	/* prototype */
	[14] = { 4, 0 },	/* variable */
	[15] = { 0, 12 },	/* section */
	[17] = { 4, 0 },	/* declaration tag */
	[19] = { 0, 12 },	/* enumeration of 64 bits */
};

static char *data;
static size_t data_len;

static int fail(const char *text)
{
	fprintf(stderr, "btf_struct: %s\n", text);
	return 1;
}

static int load(const char *path)
{
	FILE *f = fopen(path, "rb");
	size_t room = 0, n = 1;

	while (f && n) {
		if (data_len == room) {
			char *more = realloc(data, room += 16 << 20);

			if (!more)
				break;
			data = more;
		}
		n = fread(data + data_len, 1, room - data_len, f);
		data_len += n;
	}
	if (f)
		fclose(f);
	return data_len ? 0 : fail("the file cannot be read");
}

/* is [off, off + len) inside what was read? */
static int inside(size_t off, size_t len)
{
	return off <= data_len && len <= data_len - off;
}

/* Narrow data to the section .BTF of an ELF file; a bare section stays as it is. */
static int narrow(void)
{
	const Elf64_Ehdr *e = (void *)data;
	const Elf64_Shdr *sh, *names;
	unsigned int i;

	if (!inside(0, sizeof(*e)) || memcmp(e->e_ident, ELFMAG, SELFMAG))
		return 0;
	if (!inside(e->e_shoff, (size_t)e->e_shnum * sizeof(*sh)) || e->e_shstrndx >= e->e_shnum)
		return fail("a broken ELF file");
	sh = (void *)(data + e->e_shoff);
	names = &sh[e->e_shstrndx];
	for (i = 0; i < e->e_shnum; i++) {
		if (!inside(names->sh_offset + sh[i].sh_name, sizeof(".BTF")) ||
		    strcmp(data + names->sh_offset + sh[i].sh_name, ".BTF"))
			continue;
		if (!inside(sh[i].sh_offset, sh[i].sh_size))
			break;
		data_len = sh[i].sh_size;
		data += sh[i].sh_offset;
		return 0;
	}
	return fail("no section .BTF");
}

static void print(const char *name, const struct btf_type *t, const char *str, size_t str_len)
{
	const struct btf_member *m = (void *)(t + 1);
	__u32 i, n = t->info & 0xffffff, bits;

	printf("#define BTF_SIZEOF_%s %u\n", name, t->size);
	for (i = 0; i < n; i++) {
		bits = t->info >> 31 ? m[i].offset & 0xffffff : m[i].offset;
		if (m[i].name && m[i].name < str_len && !(bits % 8))
			printf("#define BTF_%s_%s %u\n", name, str + m[i].name, bits / 8);
	}
}

static int find(char **names, int count)
{
	const struct btf_header *h = (void *)data;
	const char *str;
	size_t at, end;
	int i;

	if (!inside(0, sizeof(*h)) || h->magic != BTF_MAGIC)
		return fail("no type information that is known here");
	at = (size_t)h->hdr_len + h->type_off;
	end = at + h->type_len;
	if (!inside(at, h->type_len) || !inside((size_t)h->hdr_len + h->str_off, h->str_len))
		return fail("broken type information");
	str = data + h->hdr_len + h->str_off;
	while (at + sizeof(struct btf_type) <= end) {
		const struct btf_type *t = (void *)(data + at);
		__u32 kind = t->info >> 24 & 0x7f, n = t->info & 0xffffff;

		if (kind >= KIND_COUNT)
			return fail("a kind of type that is not known here");
		at += sizeof(*t) + after[kind].once + (size_t)after[kind].each * n;
		if (at > end)
			return fail("broken type information");
		for (i = 0; kind == KIND_STRUCT && i < count; i++)
			if (t->name < h->str_len && !strcmp(str + t->name, names[i]))
				print(names[i], t, str, h->str_len);
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return fail("usage: btf_struct VMLINUX STRUCT...");
	return load(argv[1]) || narrow() ? 1 : find(argv + 2, argc - 2);
}
