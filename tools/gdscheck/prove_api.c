// SPDX-License-Identifier: MIT
/* prove_api.c - the libraries of the machine, whoever made them, loaded at run time. */
#include <dlfcn.h>
#include <string.h>

#include "prove.h"

#define OPTIONAL 1

static const struct {
	const char *name;
	size_t at;
	unsigned int flags;
} cufile[] = {
	{ "cuFileDriverOpen", offsetof(struct prove_api, open) },
	{ "cuFileDriverClose", offsetof(struct prove_api, close) },
	{ "cuFileHandleRegister", offsetof(struct prove_api, file) },
	{ "cuFileHandleDeregister", offsetof(struct prove_api, unfile) },
	{ "cuFileBufRegister", offsetof(struct prove_api, buf) },
	{ "cuFileBufDeregister", offsetof(struct prove_api, unbuf) },
	{ "cuFileRead", offsetof(struct prove_api, read) },
	{ "cuFileWrite", offsetof(struct prove_api, write) },
	{ "ogds_last_io", offsetof(struct prove_api, last_io), OPTIONAL },
	{ "ogds_explain", offsetof(struct prove_api, explain), OPTIONAL },
	{ "ogds_reason_id", offsetof(struct prove_api, reason_id), OPTIONAL },
	{ "ogds_reason_text", offsetof(struct prove_api, reason_text), OPTIONAL },
	{ "ogds_reason_remedy", offsetof(struct prove_api, reason_remedy), OPTIONAL },
}, cuda[] = {
	{ "cuInit", offsetof(struct prove_api, init) },
	{ "cuDeviceGetCount", offsetof(struct prove_api, count) },
	{ "cuDeviceGet", offsetof(struct prove_api, device) },
	{ "cuDeviceGetPCIBusId", offsetof(struct prove_api, pci) },
	{ "cuDevicePrimaryCtxRetain", offsetof(struct prove_api, retain) },
	{ "cuCtxSetCurrent", offsetof(struct prove_api, current) },
	{ "cuCtxSynchronize", offsetof(struct prove_api, sync) },
	{ "cuMemAlloc_v2", offsetof(struct prove_api, alloc) },
	{ "cuMemFree_v2", offsetof(struct prove_api, free) },
	{ "cuMemsetD8_v2", offsetof(struct prove_api, fill) },
	{ "cuMemcpyHtoD_v2", offsetof(struct prove_api, to_gpu) },
	{ "cuMemcpyDtoH_v2", offsetof(struct prove_api, from_gpu) },
};

/* dlopen says "libX.so.0: cannot open ..."; what to do is ours to say. */
static void *load(const char *name, const char *next, char *why, size_t len)
{
	void *so = dlopen(name, RTLD_NOW | RTLD_GLOBAL);

	if (!so)
		snprintf(why, len, "%s; %s", dlerror(), next);
	return so;
}

static bool take(void *so, const char *lib, const char *name, size_t at, bool optional,
		 struct prove_api *api, char *why, size_t len)
{
	void *fn = dlsym(so, name);

	memcpy((char *)api + at, &fn, sizeof(fn));
	if (fn || optional)
		return true;
	snprintf(why, len, "%s has no %s; install one of this release", lib, name);
	return false;
}

bool prove_api_load(struct prove_api *api, char *why, size_t len)
{
	void *so;
	size_t i;

	memset(api, 0, sizeof(*api));
	so = load("libcuda.so.1", "install the GPU's driver, in a container pass it through", why,
		  len);
	for (i = 0; so && i < sizeof(cuda) / sizeof(cuda[0]); i++)
		if (!take(so, "libcuda.so.1", cuda[i].name, cuda[i].at, false, api, why, len))
			return false;
	if (!so)
		return false;
	so = load("libcufile.so.0", "install the library, or name its folder in LD_LIBRARY_PATH",
		  why, len);
	for (i = 0; so && i < sizeof(cufile) / sizeof(cufile[0]); i++)
		if (!take(so, "libcufile.so.0", cufile[i].name, cufile[i].at,
			  cufile[i].flags & OPTIONAL, api, why, len))
			return false;
	return so;
}
