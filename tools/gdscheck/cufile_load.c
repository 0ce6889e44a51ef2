// SPDX-License-Identifier: MIT
/* cufile_load.c - finds libcufile.so.0 and its functions. */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cufile_load.h"

#define AT(member) offsetof(struct gc_cufile, member)

static const struct {
	const char *name;
	size_t at;
	bool needed;
} functions[] = {
	{ "cuFileDriverOpen", AT(open), true },
	{ "cuFileDriverClose", AT(close), true },
	{ "cuFileDriverGetProperties", AT(properties), true },
	{ "cuFileHandleRegister", AT(handle_register), true },
	{ "cuFileHandleDeregister", AT(handle_deregister), true },
	{ "cuFileBufRegister", AT(buf_register), true },
	{ "cuFileBufDeregister", AT(buf_deregister), true },
	{ "cuFileRead", AT(read), true },
	{ "cuFileGetVersion", AT(version), false },
	{ "cuFileGetParameterSizeT", AT(get_size), false },
	{ "cuFileGetParameterBool", AT(get_bool), false },
	{ "cuFileGetParameterPosixPoolSlabArray", AT(get_posix), false },
	{ "cuFileGetParameterGpuBounceBufferSlabArray", AT(get_bounce), false },
	{ "cuFileDriverGetP2PFlags", AT(p2p_flags), false },
	{ "ogds_last_io", AT(last_io), false },
	{ "ogds_route_name", AT(route_name), false },
	{ "ogds_reason_id", AT(reason_id), false },
};

int gc_cufile_load(struct gc_cufile *c, char *why, size_t len)
{
	void *lib, *at;
	size_t i;

	memset(c, 0, sizeof(*c));
	lib = dlopen("libcufile.so.0", RTLD_NOW | RTLD_LOCAL);
	if (!lib) {
		snprintf(why, len, "%s: install it, or name its folder in LD_LIBRARY_PATH", dlerror());
		return -ENOENT;
	}
	for (i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		at = dlsym(lib, functions[i].name);
		if (!at && functions[i].needed) {
			snprintf(why, len, "libcufile.so.0 has no %s: install a complete one",
				 functions[i].name);
			return -ENOENT;
		}
		memcpy((char *)c + functions[i].at, &at, sizeof(at));
	}
	return 0;
}

const char *gc_cufile_text(CUfileError_t e)
{
	return e.err == CU_FILE_SUCCESS ? "success" : CUFILE_ERRSTR(e.err);
}
