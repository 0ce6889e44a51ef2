// SPDX-License-Identifier: MIT
/* tar.c - a writer of ustar archives. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "tar.h"

#define BLOCK 512
#define LONGEST 1024	/* of a path or target of a link */

struct header {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, link[100];
	char magic[6], version[2], user[32], group[32], major[8], minor[8], prefix[155], pad[12];
};

_Static_assert(sizeof(struct header) == BLOCK, "a header is one block");

/* The path as it is, or cut at a slash: what comes before it goes into the prefix. */
static bool put_name(struct header *h, const char *path)
{
	size_t n = strlen(path);
	const char *cut;

	if (n <= sizeof(h->name)) {
		memcpy(h->name, path, n);
		return true;
	}
	for (cut = path + n; cut > path; cut--) {
		if (*cut != '/' || (size_t)(cut - path) > sizeof(h->prefix))
			continue;
		n = strlen(cut + 1);
		if (!n || n > sizeof(h->name))
			continue;
		memcpy(h->prefix, path, (size_t)(cut - path));
		memcpy(h->name, cut + 1, n);
		return true;
	}
	return false;
}

static int put_block(FILE *f, struct header *h, char type, unsigned int mode, size_t size)
{
	const unsigned char *p = (const unsigned char *)h;
	unsigned int sum = 0;
	size_t i;

	h->type = type;
	memcpy(h->magic, "ustar", 6);
	memcpy(h->version, "00", 2);
	snprintf(h->mode, sizeof(h->mode), "%07o", mode & 07777);
	snprintf(h->uid, sizeof(h->uid), "%07o", 0);
	snprintf(h->gid, sizeof(h->gid), "%07o", 0);
	snprintf(h->size, sizeof(h->size), "%011zo", size);
	snprintf(h->mtime, sizeof(h->mtime), "%011o", 0);
	/* the sum is taken with blanks in its place */
	memset(h->sum, ' ', sizeof(h->sum));
	for (i = 0; i < sizeof(*h); i++)
		sum += p[i];
	snprintf(h->sum, sizeof(h->sum), "%06o", sum);
	h->sum[7] = ' ';
	return fwrite(h, sizeof(*h), 1, f) == 1 ? 0 : -EIO;
}

static int put_data(FILE *f, const void *data, size_t len)
{
	static const char zero[BLOCK];
	size_t rest = (BLOCK - len % BLOCK) % BLOCK;

	if (len && fwrite(data, len, 1, f) != 1)
		return -EIO;
	return !rest || fwrite(zero, rest, 1, f) == 1 ? 0 : -EIO;
}

/* "37 linkpath=../..\n": the length counts itself */
static size_t record(char *to, size_t len, const char *key, const char *value)
{
	size_t n = strlen(key) + strlen(value) + 3, digits = 1;
	int k;

	while (snprintf(NULL, 0, "%zu", n + digits) != (int)digits)
		digits++;
	k = snprintf(to, len, "%zu %s=%s\n", n + digits, key, value);
	return k < 0 || (size_t)k >= len ? len : (size_t)k;
}

/* The header of a member; before it, in an extended header, what does not fit into it. */
static int put_header(FILE *f, const char *path, char type, unsigned int mode, size_t size,
		      const char *to)
{
	struct header h = { 0 }, x = { .name = "long" };
	char more[2 * LONGEST];
	size_t n = 0;
	int r;

	if (strlen(path) >= LONGEST - 32 || strlen(to) >= LONGEST - 32)
		return -ENAMETOOLONG;
	if (!put_name(&h, path)) {
		n = record(more, sizeof(more), "path", path);
		memcpy(h.name, path, sizeof(h.name));
	}
	if (strlen(to) > sizeof(h.link))
		n += record(more + n, sizeof(more) - n, "linkpath", to);
	memcpy(h.link, to, strnlen(to, sizeof(h.link)));
	if (n) {
		r = put_block(f, &x, 'x', 0644, n);
		if (!r)
			r = put_data(f, more, n);
		if (r)
			return r;
	}
	return put_block(f, &h, type, mode, size);
}

int tar_file(FILE *f, const char *path, unsigned int mode, const void *data, size_t len)
{
	int r = put_header(f, path, '0', mode, len, "");

	return r ? r : put_data(f, data, len);
}

int tar_dir(FILE *f, const char *path)
{
	return put_header(f, path, '5', 0755, 0, "");
}

int tar_link(FILE *f, const char *path, const char *to)
{
	return put_header(f, path, '2', 0777, 0, to);
}

int tar_end(FILE *f)
{
	static const char zero[2 * BLOCK];

	return fwrite(zero, sizeof(zero), 1, f) == 1 && !fflush(f) ? 0 : -EIO;
}
