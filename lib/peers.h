/* SPDX-License-Identifier: MIT */
/*
 * peers.h - memory that the GPU's driver pins for nvidia-fs only when this process has listed
 * it: GeForce. CUDA makes the list by itself on the boards that are sold for it; where it does
 * not, each pin is refused with EINVAL, and lib/rm makes one, without privilege.
 *
 * A cover is one memory object of the driver on the list: an allocation of CUDA, 2 MiB that small
 * ones share, or what cuMemCreate made to be exported. It holds the object by a second name, so all
 * of it stays allocated as long as the cover does, also when CUDA frees it; therefore only what is
 * registered, and memory of the library, has one. Windows onto one object share it.
 *
 *	the way:  UNTRIED --a pin is refused, and is not once its memory is listed--> NEEDED
 *	          any --the driver does what is not expected--> OFF, for this open
 *	a cover:  LISTED --its address is another object's by now--> NAMED --last window--> gone
 *	          LISTED --last window--> gone
 *
 * The driver has an address on the list once, and CUDA's names of objects come again once they are
 * freed. So an entry of which no allocation lives any more is taken off before another one of that
 * address goes on, and after each pin CUDA is asked whether the allocation still lives: else the
 * pin may be of memory that is nobody's, and is given back.
 *
 * peers_gpu.lock guards all of this, and is held over calls of the GPU's driver, but not over a
 * pin. Requests never take it: registrations, and staging when it grows.
 */
#ifndef PEERS_H
#define PEERS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nvfs.h"
#include "rm/rm.h"

struct device;
struct peers_cover;
struct peers_use;

/* Of one GPU; in struct device. */
struct peers_gpu {
	pthread_mutex_t lock;
	struct device *dev;
	enum { PEERS_UNTRIED, PEERS_NEEDED, PEERS_OFF } state;
	struct rm *rm;			/* NULL: not connected */
	struct rm_peers list;		/* while connected */
	struct peers_cover *covers;
};

void peers_gpu_init(struct peers_gpu *g, struct device *dev);
/* At close, all windows closed. */
void peers_gpu_release(struct peers_gpu *g);

/*
 * As nvfs_win_open, of memory of CUDA's at va; flags: NVFS_WIN_*. Where the driver pins nothing
 * that is not listed, it lists the allocation. 0, or -errno with *reason. Blocks for the
 * drivers; any thread, inside driver_enter() .. driver_leave().
 */
int peers_win_open(struct device *dev, struct nvfs_win *w, uint64_t va, size_t size,
		   unsigned int flags, unsigned int *reason);
void peers_win_close(struct device *dev, struct nvfs_win *w);

#endif /* PEERS_H */
