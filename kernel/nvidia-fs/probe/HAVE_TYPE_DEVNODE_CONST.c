// SPDX-License-Identifier: GPL-2.0-only
/* HAVE_TYPE_DEVNODE_CONST.c - does the devnode callback of a device type take a const device? */
#include <linux/device.h>

static char *devnode(const struct device *dev, umode_t *mode, kuid_t *uid, kgid_t *gid)
{
	return NULL;
}

const struct device_type probe = { .devnode = devnode };
