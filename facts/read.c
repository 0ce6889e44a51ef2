// SPDX-License-Identifier: MIT
/*
 * read.c - small files and symbolic links below a root directory.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "read.h"

/* bytes: a line, and as much again to read into; /dev/kmsg wants room for 8 KiB */
#define LINES_ROOM (2 * FACTS_LINE)

void (*facts_seen)(const char *root, const char *path, enum facts_look how);

static void seen(const char *root, const char *path, enum facts_look how)
{
	if (facts_seen)
		facts_seen(root, path, how);
}

int facts_join(const char *root, const char *path, char *out, size_t len)
{
	int n = snprintf(out, len, "%s/%s", root, path);

	return n < 0 || (size_t)n >= len ? -ENAMETOOLONG : 0;
}

const char *facts_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

int facts_read(const char *root, const char *path, char *buf, size_t len)
{
	char full[PATH_MAX];
	size_t have = 0;
	ssize_t n;
	int fd, ret;

	ret = facts_join(root, path, full, sizeof(full));
	if (ret)
		return ret;
	seen(root, path, FACTS_LOOK_FILE);
	fd = open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -errno;
	do {
		n = read(fd, buf + have, len - have);
		if (n > 0)
			have += (size_t)n;
	} while ((n > 0 && have < len) || (n < 0 && errno == EINTR));
	ret = n < 0 ? -errno : have == len ? -EOVERFLOW : 0;
	close(fd);
	if (ret)
		return ret;
	while (have && strchr(" \t\n", buf[have - 1]))
		have--;
	buf[have] = '\0';
	return (int)have;
}

/* Appends the components of `text` to the path in out, of *used bytes; ".." takes one away. */
static int walk(const char *text, char *out, size_t len, size_t *used)
{
	size_t n;

	for (; *text; text += n) {
		text += strspn(text, "/");
		n = strcspn(text, "/");
		if (!n || (n == 1 && text[0] == '.'))
			continue;
		if (n == 2 && !strncmp(text, "..", 2)) {
			if (!*used)
				return -EXDEV;
			while (*used && out[--*used] != '/')
				;
			out[*used] = '\0';
			continue;
		}
		if (*used + n + 2 > len)
			return -ENAMETOOLONG;
		if (*used)
			out[(*used)++] = '/';
		memcpy(out + *used, text, n);
		*used += n;
		out[*used] = '\0';
	}
	return 0;
}

int facts_link(const char *root, const char *dir, const char *name, char *out, size_t len)
{
	char full[PATH_MAX], path[FACTS_SYSFS_PATH], text[FACTS_SYSFS_PATH];
	size_t used = 0;
	ssize_t n;
	int ret;

	ret = facts_join(dir, name, path, sizeof(path));
	if (!ret)
		ret = facts_join(root, path, full, sizeof(full));
	if (ret)
		return ret;
	seen(root, path, FACTS_LOOK_LINK);
	n = readlink(full, text, sizeof(text) - 1);
	if (n < 0)
		return -errno;
	if ((size_t)n == sizeof(text) - 1)
		return -ENAMETOOLONG;
	text[n] = '\0';
	out[0] = '\0';
	ret = text[0] == '/' ? 0 : walk(dir, out, len, &used);
	return ret ? ret : walk(text, out, len, &used);
}

bool facts_there(const char *root, const char *dir, const char *name)
{
	char path[FACTS_SYSFS_PATH], full[PATH_MAX];

	if (facts_join(dir, name, path, sizeof(path)) || facts_join(root, path, full, sizeof(full)))
		return false;
	seen(root, path, FACTS_LOOK_THERE);
	return !access(full, F_OK);
}

int facts_read_in(const char *root, const char *dir, const char *name, char *buf, size_t len)
{
	char path[FACTS_SYSFS_PATH];
	int ret = facts_join(dir, name, path, sizeof(path));

	return ret ? ret : facts_read(root, path, buf, len);
}

bool facts_number(const char *root, const char *dir, const char *name, long *out)
{
	char text[32], *end;

	if (facts_read_in(root, dir, name, text, sizeof(text)) <= 0)
		return false;
	errno = 0;
	*out = strtol(text, &end, 0);
	return !errno && !*end;
}

/* The raw system call, as opendir takes memory of the heap. */
int facts_entries(const char *root, const char *dir, int (*each)(void *arg, const char *name),
		  void *arg)
{
	_Alignas(struct dirent64) char buf[2048];
	const struct dirent64 *e;
	char full[PATH_MAX];
	ssize_t got = 0, at;
	int fd, r;

	r = facts_join(root, dir, full, sizeof(full));
	if (r)
		return r;
	seen(root, dir, FACTS_LOOK_DIR);
	fd = open(full, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (!r && (got = getdents64(fd, buf, sizeof(buf))) > 0) {
		for (at = 0; !r && at < got; at += e->d_reclen) {
			e = (const struct dirent64 *)(buf + at);
			if (e->d_name[0] != '.')
				r = each(arg, e->d_name);
		}
	}
	if (!r && got < 0)
		r = -errno;
	close(fd);
	return r;
}

/* Hands out the lines in buf, of *have bytes, and keeps what is no whole line yet. */
static int hand_out(char *buf, size_t *have, int (*each)(void *arg, char *line), void *arg)
{
	char *line = buf, *nl;
	int r = 0;

	while (!r && (nl = memchr(line, '\n', *have - (size_t)(line - buf)))) {
		*nl = '\0';
		if (nl - line >= FACTS_LINE)
			line[FACTS_LINE - 1] = '\0';
		r = each(arg, line);
		line = nl + 1;
	}
	*have -= (size_t)(line - buf);
	memmove(buf, line, *have);
	/* what is too much of a line is dropped */
	if (*have > FACTS_LINE)
		*have = FACTS_LINE;
	return r;
}

int facts_lines(const char *root, const char *path, int (*each)(void *arg, char *line),
		void *arg)
{
	char buf[LINES_ROOM], full[PATH_MAX];
	size_t have = 0;
	ssize_t n = 0;
	int fd, r;

	r = facts_join(root, path, full, sizeof(full));
	if (r)
		return r;
	seen(root, path, FACTS_LOOK_FILE);
	fd = open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -errno;
	while (!r) {
		n = read(fd, buf + have, sizeof(buf) - 1 - have);
		/* EPIPE: the kernel's log went on without us */
		if (n < 0 && (errno == EINTR || errno == EPIPE))
			continue;
		if (n <= 0)
			break;
		have += (size_t)n;
		r = hand_out(buf, &have, each, arg);
	}
	if (!r && n < 0 && errno != EAGAIN)
		r = -errno;
	if (!r && have) {
		buf[have++] = '\n';
		r = hand_out(buf, &have, each, arg);
	}
	close(fd);
	return r;
}

static size_t hex(const char *p)
{
	return strspn(p, "0123456789abcdefABCDEF");
}

bool facts_is_pci(const char *p)
{
	size_t domain = hex(p);

	if (domain < 4 || domain > 8 || p[domain] != ':')
		return false;
	p += domain + 1;
	return hex(p) == 2 && p[2] == ':' && hex(p + 3) == 2 && p[5] == '.' && p[6] >= '0' &&
	       p[6] <= '7' && !p[7];
}
