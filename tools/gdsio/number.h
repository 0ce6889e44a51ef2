/* SPDX-License-Identifier: MIT */
/* number.h - numbers and sizes as they are typed. */
#ifndef GDSIO_NUMBER_H
#define GDSIO_NUMBER_H

#include <stdint.h>

/* Digits alone, up to max: 0 or -EINVAL */
int gdsio_parse_number(const char *text, uint64_t max, uint64_t *value);

/* "64K", "1M", "2G" or plain bytes: 0 or -EINVAL */
int gdsio_parse_size(const char *text, uint64_t *bytes);

/* "64K" where that is exact, else plain bytes */
const char *gdsio_size_text(uint64_t bytes, char text[24]);

#endif /* GDSIO_NUMBER_H */
