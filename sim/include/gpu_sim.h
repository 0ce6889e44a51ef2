/* SPDX-License-Identifier: MIT */
/*
 * gpu_sim.h - what the simulator's libcuda.so.1 tells beyond CUDA.
 *
 * Environment it reads:
 *   GPU_SIM_SCATTER   contig | 2m | 64k | reverse | alternate | random:SEED: how the
 *                     64-KiB pages of an allocation lie in VRAM (64k and reverse are one)
 *   GPU_SIM_SEED      seed of the delays (0)
 *   GPU_SIM_DELAY_US  each asynchronous operation starts up to this much late (100)
 *   GPU_SIM_HOST_GPUS, GPU_SIM_HOST_MB   devices and their size where there is no card
 *                     and host memory stands for VRAM (1, 1024)
 */
#ifndef GPU_SIM_USER_H
#define GPU_SIM_USER_H

#include <stddef.h>
#include <stdint.h>

#include "../gpu/gpu_sim_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The physically contiguous pieces of a device range, in the order of the range, which
 * lies in one allocation. Returns how many there are, also when n is less (n may be 0),
 * or -ENODEV (host memory mode), -ENOENT (no device memory), another negative errno.
 */
int gpu_sim_where(const void *ptr, size_t size, struct gpu_sim_piece *pieces, unsigned int n);

/* The client that CUDA IPC handles name (driver 580's layout) in host memory mode. */
#define GPU_SIM_RM_CLIENT 0xc1d00042u

/*
 * What an object of such a handle is, in host memory mode: where it lies and its size. 0, or
 * -ENOENT: it was freed, or there are cards. The memory is shared: mremap() of no bytes of it
 * makes a second mapping, which keeps it after it was freed, as the driver's second name does.
 */
int gpu_sim_rm_object(uint32_t object, void **at, size_t *size);

/* Cards there are; 0: host memory stands for VRAM. -errno before or without cuInit(). */
int gpu_sim_cards(void);

#ifdef __cplusplus
}
#endif

#endif /* GPU_SIM_USER_H */
