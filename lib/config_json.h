/* SPDX-License-Identifier: MIT */
/* config_json.h - what the parts of the configuration share. Private to config*.c. */
#ifndef CONFIG_JSON_H
#define CONFIG_JSON_H

#include "config.h"

#define CONFIG_MESSAGE 768	/* bytes of a message; a longer one is cut */

#define CONFIG_LEVELS "NOTICE, ERROR, WARN, INFO, DEBUG, TRACE"

#endif /* CONFIG_JSON_H */
