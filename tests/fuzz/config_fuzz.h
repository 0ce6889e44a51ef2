/* SPDX-License-Identifier: MIT */
/* config_fuzz.h - one input; a rule that is broken aborts. */
#ifndef CONFIG_FUZZ_H
#define CONFIG_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif /* CONFIG_FUZZ_H */
