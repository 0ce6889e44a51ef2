/* SPDX-License-Identifier: MIT */
/*
 * machine.h - unpacks a made-up machine into a folder: the language of
 * tests/fixtures/machines/README. A line that it does not know ends the test.
 */
#ifndef T_MACHINE_H
#define T_MACHINE_H

#include <stdint.h>
#include <stdlib.h>

#include "tree.h"

#define MACHINE_TEXT 8192

#define MACHINE_BYTES 4096

struct machine_file {
	const char *root;
	char path[400];		/* of the file whose lines come; "": none */
	char text[MACHINE_TEXT];
	size_t len;
	unsigned char bytes[MACHINE_BYTES];	/* of one that is told in numbers */
	size_t nbytes;		/* 0: it is not */
};

static inline void machine_die(const char *what, const char *line)
{
	fprintf(stderr, "machine: %s: %s\n", what, line);
	abort();
}

static inline void machine_write(const char *root, const char *path, const char *text)
{
	if (!tree_put(root, path, text))
		machine_die("cannot be written", path);
}

static inline void machine_write_bytes(const struct machine_file *f)
{
	char path[512];
	FILE *out;

	if (!tree_path(path, sizeof(path), f->root, f->path))
		machine_die("cannot be written", f->path);
	out = fopen(path, "w");
	if (!out || fwrite(f->bytes, f->nbytes, 1, out) != 1 || fclose(out))
		machine_die("cannot be written", f->path);
}

/* The lines before are those of one file: it is written when the next thing begins. */
static inline void machine_flush(struct machine_file *f)
{
	if (f->nbytes)
		machine_write_bytes(f);
	else if (f->path[0])
		machine_write(f->root, f->path, f->text);
	f->path[0] = f->text[0] = '\0';
	f->len = f->nbytes = 0;
}

/* "OFFSET BYTES", both hexadecimal */
static inline void machine_row(struct machine_file *f, const char *line)
{
	unsigned int at, byte;
	int n;

	if (sscanf(line, "%x %n", &at, &n) != 1)
		machine_die("OFFSET BYTES", line);
	for (line += n; *line; line += 2, at++) {
		if (sscanf(line, "%2x", &byte) != 1 || at >= f->nbytes)
			machine_die("no bytes, or too many", line);
		f->bytes[at] = (unsigned char)byte;
	}
}

static inline void machine_link(const char *root, const char *path, const char *to)
{
	if (!tree_link(root, path, to))
		machine_die("cannot be linked", path);
}

/* "../" for each folder above a path, then `to` */
static inline void machine_up(const char *path, const char *to, char *out, size_t len)
{
	const char *p;
	size_t n = 0;

	for (p = strchr(path, '/'); p; p = strchr(p + 1, '/'))
		n += (size_t)snprintf(out + n, len - n, "../");
	snprintf(out + n, len - n, "%s", to);
}

/* 4096 bytes with an ACS capability, or 256 without */
static inline void machine_config(const char *root, const char *dir, const char *acs)
{
	unsigned char c[4096] = { 0x86, 0x80 };
	char path[512];
	FILE *f;

	c[0x100] = 0x0d;
	c[0x102] = 1;
	c[0x106] = (unsigned char)strtoul(acs, NULL, 16);
	if ((size_t)snprintf(path, sizeof(path), "%s/%s/config", root, dir) >= sizeof(path))
		machine_die("too long", dir);
	f = fopen(path, "w");
	if (!f || fwrite(c, sizeof(c), 1, f) != 1 || fclose(f))
		machine_die("cannot be written", path);
}

static inline void machine_bar1(const char *root, const char *path, const char *value)
{
	unsigned long long start, mib;
	char text[512];

	if (sscanf(value, "%llx+%llu", &start, &mib) != 2)
		machine_die("bar1 is START+MIB", value);
	snprintf(text, sizeof(text),
		 "0x00000000fb000000 0x00000000fbffffff 0x0000000000040200\n"
		 "0x%016llx 0x%016llx 0x000000000014220c\n"
		 "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
		 "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
		 "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
		 "0x0000000000000000 0x0000000000000000 0x0000000000000000\n",
		 start, start + (mib << 20) - 1);
	machine_write(root, path, text);
}

static inline void machine_lanes(const char *root, const char *dir, const char *value)
{
	char width[16], max[16], speed[16], top[16], path[512], text[64];

	if (sscanf(value, "%15[^/]/%15[^@]@%15[^/]/%15s", width, max, speed, top) != 4)
		machine_die("link is WIDTH/MAX@SPEED/MAX", value);
	snprintf(path, sizeof(path), "%s/current_link_width", dir);
	machine_write(root, path, width);
	snprintf(path, sizeof(path), "%s/max_link_width", dir);
	machine_write(root, path, max);
	snprintf(path, sizeof(path), "%s/current_link_speed", dir);
	snprintf(text, sizeof(text), "%s GT/s PCIe\n", speed);
	machine_write(root, path, text);
	snprintf(path, sizeof(path), "%s/max_link_speed", dir);
	snprintf(text, sizeof(text), "%s GT/s PCIe\n", top);
	machine_write(root, path, text);
}

static inline void machine_iommu(const char *root, const char *dir, const char *value)
{
	char group[64], path[512], to[600], up[700];
	const char *type = strchr(value, ':');

	if (!type)
		machine_die("iommu is GROUP:TYPE", value);
	snprintf(group, sizeof(group), "sys/kernel/iommu_groups/%.*s", (int)(type - value), value);
	snprintf(path, sizeof(path), "%s/type", group);
	machine_write(root, path, type + 1);
	snprintf(path, sizeof(path), "%s/iommu_group", dir);
	snprintf(to, sizeof(to), "%s", group);
	machine_up(path, to, up, sizeof(up));
	machine_link(root, path, up);
}

static inline void machine_attribute(const char *root, const char *dir, char *word)
{
	char path[512], to[600], up[700];
	char *value = strchr(word, '=');

	if (!value)
		machine_die("NAME=VALUE is wanted", word);
	*value++ = '\0';
	if (!strcmp(word, "acs")) {
		machine_config(root, dir, value);
	} else if (!strcmp(word, "iommu")) {
		machine_iommu(root, dir, value);
	} else if (!strcmp(word, "link")) {
		machine_lanes(root, dir, value);
	} else if (!strcmp(word, "bar1")) {
		snprintf(path, sizeof(path), "%s/resource", dir);
		machine_bar1(root, path, value);
	} else if (!strcmp(word, "aer")) {
		snprintf(path, sizeof(path), "%s/aer_dev_correctable", dir);
		snprintf(to, sizeof(to), "RxErr %s\nTOTAL_ERR_COR %s\n", value, value);
		machine_write(root, path, to);
	} else if (!strcmp(word, "driver")) {
		snprintf(path, sizeof(path), "%s/driver", dir);
		snprintf(to, sizeof(to), "sys/bus/pci/drivers/%s", value);
		machine_up(path, to, up, sizeof(up));
		machine_link(root, path, up);
	} else {
		snprintf(path, sizeof(path), "%s/%s", dir, word);
		machine_write(root, path, value);
	}
}

static inline void machine_pci(const char *root, char *line)
{
	char *place, *class, *id, *word, *save = NULL, *colon;
	char dir[400], path[512], to[600], text[32];

	place = strtok_r(line, " ", &save);
	class = strtok_r(NULL, " ", &save);
	id = strtok_r(NULL, " ", &save);
	colon = id ? strchr(id, ':') : NULL;
	if (!colon)
		machine_die("pci PLACE CLASS VENDOR:DEVICE", line);
	*colon = '\0';
	snprintf(dir, sizeof(dir), "sys/devices/%s", place);
	snprintf(path, sizeof(path), "%s/class", dir);
	snprintf(text, sizeof(text), "0x%s\n", class);
	machine_write(root, path, text);
	snprintf(path, sizeof(path), "%s/vendor", dir);
	snprintf(text, sizeof(text), "0x%s\n", id);
	machine_write(root, path, text);
	snprintf(path, sizeof(path), "%s/device", dir);
	snprintf(text, sizeof(text), "0x%s\n", colon + 1);
	machine_write(root, path, text);
	snprintf(path, sizeof(path), "sys/bus/pci/devices/%s", strrchr(dir, '/') + 1);
	snprintf(to, sizeof(to), "../../../devices/%s", place);
	machine_link(root, path, to);
	while ((word = strtok_r(NULL, " ", &save)))
		machine_attribute(root, dir, word);
}

static inline void machine_disk(const char *root, const char *line)
{
	char place[300], number[32], path[512], to[600];

	if (sscanf(line, "%299s %31s", place, number) != 2)
		machine_die("disk PLACE M:N", line);
	snprintf(path, sizeof(path), "sys/devices/%s/dev", place);
	machine_write(root, path, number);
	snprintf(to, sizeof(to), "../../devices/%s", place);
	snprintf(path, sizeof(path), "sys/dev/block/%s", number);
	machine_link(root, path, to);
	snprintf(path, sizeof(path), "sys/class/block/%s", strrchr(place, '/') + 1);
	machine_link(root, path, to);
}

/* The link sys/dev/block/M:N tells the folder. */
static inline void machine_below(const char *root, const char *line)
{
	char number[32], name[64], path[512], to[400], up[600];
	ssize_t n;

	if (sscanf(line, "%31s %63s", number, name) != 2)
		machine_die("below M:N NAME", line);
	snprintf(path, sizeof(path), "%s/sys/dev/block/%s", root, number);
	n = readlink(path, to, sizeof(to) - 1);
	if (n < 6)
		machine_die("no such disk", line);
	to[n] = '\0';
	snprintf(path, sizeof(path), "sys/%s/slaves/%s", to + 6, name);
	snprintf(to, sizeof(to), "%s/sys/class/block/%s", root, name);
	n = readlink(to, up, sizeof(up) - 1);
	if (n < 6)
		machine_die("no such disk", line);
	up[n] = '\0';
	snprintf(to, sizeof(to), "sys/%.300s", up + 6);
	machine_up(path, to, up, sizeof(up));
	machine_link(root, path, up);
}

/* One line; false: it is none of this language. */
static inline bool machine_line(struct machine_file *f, char *line)
{
	char *arg = strchr(line, ' '), path[512];
	unsigned int mode;

	line[strcspn(line, "\n")] = '\0';
	if (line[0] == '|' && f->nbytes) {
		machine_row(f, line + 1);
		return true;
	}
	if (line[0] == '|') {
		if (!f->path[0] || f->len + strlen(line) + 1 >= sizeof(f->text))
			machine_die("a line of no file, or too many", line);
		f->len += (size_t)snprintf(f->text + f->len, sizeof(f->text) - f->len, "%s\n",
					   line + 1);
		return true;
	}
	machine_flush(f);
	if (!line[0] || line[0] == '#')
		return true;
	if (!arg++)
		return false;
	if (!strncmp(line, "file ", 5)) {
		snprintf(f->path, sizeof(f->path), "%s", arg);
	} else if (!strncmp(line, "bytes ", 6)) {
		if (sscanf(arg, "%399s %zu", f->path, &f->nbytes) != 2 || !f->nbytes ||
		    f->nbytes > MACHINE_BYTES)
			machine_die("bytes PATH SIZE", line);
		memset(f->bytes, 0, sizeof(f->bytes));
	} else if (!strncmp(line, "node ", 5)) {
		if (sscanf(arg, "%300s %o", path, &mode) != 2)
			machine_die("node PATH MODE", line);
		machine_write(f->root, path, "");
		snprintf(f->text, sizeof(f->text), "%s/%s", f->root, path);
		if (chmod(f->text, mode))
			machine_die("cannot be changed", path);
		f->text[0] = '\0';
	} else if (!strncmp(line, "dir ", 4)) {
		snprintf(path, sizeof(path), "%.400s/x", arg);
		if (!tree_path(f->text, sizeof(f->text), f->root, path))
			machine_die("cannot be made", arg);
		f->text[0] = '\0';
	} else if (!strncmp(line, "link ", 5)) {
		if (sscanf(arg, "%300s %300s", path, f->text) != 2)
			machine_die("link PATH TARGET", line);
		machine_link(f->root, path, f->text);
		f->text[0] = '\0';
	} else if (!strncmp(line, "drop ", 5)) {
		snprintf(f->text, sizeof(f->text), "%s/%s", f->root, arg);
		if (remove(f->text))
			machine_die("is not there", arg);
		f->text[0] = '\0';
	} else if (!strncmp(line, "pci ", 4)) {
		machine_pci(f->root, arg);
	} else if (!strncmp(line, "disk ", 5)) {
		machine_disk(f->root, arg);
	} else if (!strncmp(line, "below ", 6)) {
		machine_below(f->root, arg);
	} else {
		return false;
	}
	return true;
}

/* A whole machine below root */
static inline void machine_unpack(const char *root, const char *file)
{
	static struct machine_file f;
	char line[2048];
	FILE *in = fopen(file, "r");

	f.root = root;
	f.path[0] = f.text[0] = '\0';
	f.len = f.nbytes = 0;
	if (!in)
		machine_die("cannot be read", file);
	while (fgets(line, sizeof(line), in))
		if (!machine_line(&f, line))
			machine_die("what is this line", line);
	machine_flush(&f);
	fclose(in);
}

#endif /* T_MACHINE_H */
