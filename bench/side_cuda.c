// SPDX-License-Identifier: MIT
/* side_cuda.c - the CUDA driver API, loaded. */
#include <dlfcn.h>
#include <stdio.h>

#include "side_cuda.h"

struct side_cuda cu;

const char *side_cuda_error(CUresult r)
{
	const char *name = NULL;

	if (cu.error_name)
		cu.error_name(r, &name);
	return name ? name : "unknown CUDA error";
}

static int load(char *why, size_t len)
{
	static const struct {
		void **at;
		const char *symbol;
	} all[] = {
#define SIDE_CUDA_ENTRY(member, symbol, args) { (void **)&cu.member, symbol },
		SIDE_CUDA(SIDE_CUDA_ENTRY)
#undef SIDE_CUDA_ENTRY
	};
	void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
	size_t i;

	if (!lib) {
		snprintf(why, len, "%s: no GPU driver? (without a GPU: sim/run -- COMMAND)", dlerror());
		return -1;
	}
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		*all[i].at = dlsym(lib, all[i].symbol);
		if (!*all[i].at) {
			snprintf(why, len, "libcuda.so.1 has no %s: its driver is too old",
				 all[i].symbol);
			return -1;
		}
	}
	return 0;
}

int side_cuda_open(int index, CUcontext *ctx, char *why, size_t len)
{
	CUdevice dev;
	CUresult r;

	if (!cu.init && load(why, len))
		return -1;
	r = cu.init(0);
	if (!r)
		r = cu.device(&dev, index);
	if (!r)
		r = cu.retain(ctx, dev);
	if (!r)
		r = cu.set_current(*ctx);
	if (!r)
		return 0;
	snprintf(why, len, "GPU %d: %s", index, side_cuda_error(r));
	return -1;
}
