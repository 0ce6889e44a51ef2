// SPDX-License-Identifier: MIT
/* codes_cuda.c - results of the CUDA driver API that this stack meets. */
#include "codes.h"

static const struct facts_code table[] = {
	{ 1, "CUDA_ERROR_INVALID_VALUE", "an argument is wrong", "any call; pointer attributes of memory that was freed",
	  { { "the address is no memory of CUDA's any more", "cuPointerGetAttribute fails for it",
	      "use it before it is freed" } } },
	{ 2, "CUDA_ERROR_OUT_OF_MEMORY", "no GPU memory, or no pinned host memory", "cuMemAlloc, cuMemHostAlloc, the first use of a GPU",
	  { { "the GPU's memory is used up", "nvidia-smi", "end other programs, smaller buffers" },
	    { "the memory limit of the container", "cuMemHostAlloc is the call", "raise it (ulimit -l, memory.max)" } } },
	{ 3, "CUDA_ERROR_NOT_INITIALIZED", "cuInit was not called, or failed", "any call",
	  { { "the process was forked after CUDA was used", "the call works in a fresh process",
	      "exec, or use CUDA in the child alone" } } },
	{ 4, "CUDA_ERROR_DEINITIALIZED", "CUDA is being torn down", "calls at exit",
	  { { "an exit handler uses the GPU", "it happens at the end only",
	      "close the library before main returns" } } },
	{ 34, "CUDA_ERROR_STUB_LIBRARY", "the library is the stub of the toolkit", "cuInit",
	  { { "LD_LIBRARY_PATH has .../stubs", "ldd shows it", "remove the folder" } } },
	{ 100, "CUDA_ERROR_NO_DEVICE", "no GPU for this process", "cuInit, cuDeviceGetCount; cuFileDriverOpen gives 5011",
	  { { "the nodes are missing in the container", "ls /dev/nvidia0", "pass the GPU through" },
	    { "CUDA_VISIBLE_DEVICES is empty", "echo it", "unset it" },
	    { "the driver is not loaded", "nvidia-smi fails, too", "modprobe nvidia" } } },
	{ 101, "CUDA_ERROR_INVALID_DEVICE", "no GPU of that number", "cuDeviceGet",
	  { { "a number too high", "nvidia-smi -L", "a smaller one" } } },
	{ 201, "CUDA_ERROR_INVALID_CONTEXT", "no context is current, or it is gone", "copies, launches",
	  { { "the thread has no context", "it works in the main thread", "cuCtxSetCurrent, or cudaSetDevice" } } },
	{ 205, "CUDA_ERROR_MAP_FAILED", "mapping failed after the capability said yes", "peer access of GPUs, cuMemMap",
	  { { "the driver was told to report peer-to-peer, and BAR1 cannot map it (a patched driver, or ForceP2P)",
	      "RegistryDwords in /proc/driver/nvidia/params has ForceP2P",
	      "remove the key; on two GPUs resizable BAR and static BAR1 are needed as well" },
	    { "BAR1 has no room", "nvidia-smi -q -d MEMORY", "smaller buffers, resizable BAR" } } },
	{ 217, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", "these GPUs have no peer access", "cuCtxEnablePeerAccess",
	  { { "a GeForce, or another root complex", "nvidia-smi topo -p2p r", "not needed for storage" } } },
	{ 304, "CUDA_ERROR_OPERATING_SYSTEM", "a system call failed", "cuMemHostAlloc, IPC handles",
	  { { "a container's limits", "strace", "pass /dev/shm and the nodes through" } } },
	{ 700, "CUDA_ERROR_ILLEGAL_ADDRESS", "a kernel or copy touched an address that is none", "any call after it",
	  { { "a mistake of the program", "compute-sanitizer", "mend it; the context is lost" } } },
	{ 719, "CUDA_ERROR_LAUNCH_FAILED", "a kernel ended with an error", "any call after it",
	  { { "a mistake of the program, or the GPU", "dmesg: Xid 13, 31 or 43", "compute-sanitizer" } } },
	{ 800, "CUDA_ERROR_NOT_PERMITTED", "not permitted here", "calls inside host functions of a stream",
	  { { "CUDA is called from a host function", "the stack", "from another thread" } } },
	{ 801, "CUDA_ERROR_NOT_SUPPORTED", "this GPU or driver has no such thing", "GPUDirect attributes, dma-buf export, stream memory operations",
	  { { "a GeForce: libcuda has no GPUDirect attributes there", "the model in /proc/driver/nvidia/gpus/*/information",
	      "expected; the routes bar and bounce do without" },
	    { "the driver is too old for the call", "nvidia-smi", "update it" } } },
	{ 802, "CUDA_ERROR_SYSTEM_NOT_READY", "a service of the driver is not up", "cuInit on machines with NVSwitch",
	  { { "nvidia-fabricmanager does not run", "systemctl status nvidia-fabricmanager", "start it, of the driver's version" } } },
	{ 803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "kernel module and libcuda are of two versions", "cuInit",
	  { { "the driver was updated under the running module", "/proc/driver/nvidia/version and the name of libcuda.so.*",
	      "load the new module, or reboot" } } },
	{ 999, "CUDA_ERROR_UNKNOWN", "the driver says no more", "cuInit, mostly",
	  { { "nvidia_uvm is not loaded or /dev/nvidia-uvm is missing", "lsmod; ls /dev/nvidia-uvm",
	      "modprobe nvidia-uvm; nvidia-modprobe -u" },
	    { "the GPU is in a bad state", "dmesg has Xid lines", "reset it or reboot" } } },
};

const struct facts_code *facts_code_cuda_at(size_t index)
{
	return index < sizeof(table) / sizeof(table[0]) ? &table[index] : NULL;
}

const struct facts_code *facts_code_cuda(int number)
{
	size_t i;

	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].number == number)
			return &table[i];
	return NULL;
}
