// SPDX-License-Identifier: MIT
/* put.c - names of files and commands in what others parse; names of rows. */
#include <stdbool.h>
#include <string.h>

#include "out.h"

unsigned int utf8_bytes(const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	unsigned int n = s[0] < 0x80 ? 1 : s[0] >= 0xc2 && s[0] < 0xe0 ? 2 :
			 s[0] >= 0xe0 && s[0] < 0xf0 ? 3 : s[0] >= 0xf0 && s[0] < 0xf5 ? 4 : 0;
	unsigned int i;

	for (i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	/* longer than needed, half of a pair, above U+10FFFF */
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return n;
}

/* The C1 controls are characters in UTF-8, and commands to a terminal. */
static bool is_control(const char *text)
{
	unsigned char c = (unsigned char)text[0];

	return c < 0x20 || c == 0x7f || (c == 0xc2 && (unsigned char)text[1] < 0xa0);
}

void put_plain(FILE *f, const char *text)
{
	unsigned int n;

	for (; *text; text += n) {
		n = utf8_bytes(text);
		if (n && !is_control(text) && *text != '\\') {
			fwrite(text, 1, n, f);
			continue;
		}
		n = 1;
		if (*text == '\\')
			fputs("\\\\", f);
		else
			fprintf(f, "\\x%02x", (unsigned char)*text);
	}
}

void put_json(FILE *f, const char *text)
{
	unsigned int n;

	for (; *text; text += n) {
		n = utf8_bytes(text);
		if (!n)
			fputs("\\ufffd", f);
		else if (*text == '"' || *text == '\\')
			fprintf(f, "\\%c", *text);
		else if (is_control(text) && n == 1)
			fprintf(f, "\\u%04x", (unsigned char)*text);
		else
			fwrite(text, 1, n, f);
		n = n ? n : 1;
	}
}

void put_label(FILE *f, const char *text)
{
	unsigned int n;

	for (; *text; text += n) {
		n = utf8_bytes(text);
		if (!n)
			/* not U+FFFD: two files must not become one series */
			fprintf(f, "\\\\x%02x", (unsigned char)*text);
		else if (*text == '\n')
			fputs("\\n", f);
		else if (*text == '"' || *text == '\\')
			fprintf(f, "\\%c", *text);
		else
			fwrite(text, 1, n, f);
		n = n ? n : 1;
	}
}

const char *size_name(unsigned int row, char out[32])
{
	unsigned int from = row ? 2u << row : 0;

	if (row == STATS_BUCKETS - 1)
		snprintf(out, 32, "%u-...(KiB)", from);
	else
		snprintf(out, 32, "%u-%u(KiB)", from, 4u << row);
	return out;
}

const char *time_name(unsigned int row, char out[32])
{
	unsigned int from = row ? 1u << (row - 1) : 0;

	if (row == STATS_TIMES - 1)
		snprintf(out, 32, "%u-...(us)", from);
	else
		snprintf(out, 32, "%u-%u(us)", from, 1u << row);
	return out;
}

const char *uuid_text(const char uuid[CUFILE_GPU_UUID_LEN], char out[40])
{
	unsigned int i;

	for (i = 0; i < CUFILE_GPU_UUID_LEN; i++)
		snprintf(out + 2 * i, 3, "%02x", (unsigned char)uuid[i]);
	return out;
}
