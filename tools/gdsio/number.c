// SPDX-License-Identifier: MIT
/* number.c - digits, and the suffixes K, M and G. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "number.h"

static const char units[] = "KMG";

int gdsio_parse_number(const char *text, uint64_t max, uint64_t *value)
{
	uint64_t v = 0;
	size_t i;

	for (i = 0; text[i] >= '0' && text[i] <= '9'; i++) {
		if (v > (UINT64_MAX - 9) / 10)
			return -EINVAL;
		v = v * 10 + (unsigned int)(text[i] - '0');
	}
	if (!i || text[i] || v > max)
		return -EINVAL;
	*value = v;
	return 0;
}

int gdsio_parse_size(const char *text, uint64_t *bytes)
{
	size_t len = strlen(text);
	unsigned int shift = 0;
	const char *unit;
	char digits[24];
	uint64_t v;

	if (!len || len >= sizeof(digits))
		return -EINVAL;
	snprintf(digits, sizeof(digits), "%s", text);
	unit = strchr(units, digits[len - 1] & ~0x20);
	if (unit && *unit) {
		shift = 10 * (unsigned int)(unit - units + 1);
		digits[len - 1] = '\0';
	}
	if (gdsio_parse_number(digits, UINT64_MAX >> shift, &v))
		return -EINVAL;
	*bytes = v << shift;
	return 0;
}

const char *gdsio_size_text(uint64_t bytes, char text[24])
{
	unsigned int i = sizeof(units) - 1;

	while (i && (!bytes || bytes % (1ULL << 10 * i)))
		i--;
	if (i)
		snprintf(text, 24, "%" PRIu64 "%c", bytes >> 10 * i, units[i - 1]);
	else
		snprintf(text, 24, "%" PRIu64, bytes);
	return text;
}
