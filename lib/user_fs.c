// SPDX-License-Identifier: MIT
/* user_fs.c - files of user-space file systems. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define LOG_MODULE "cufio-user"
#include "errmap.h"
#include "log.h"
#include "probes.h"
#include "user_fs.h"

#define ADDRESSES 16	/* of RDMA devices that are looked at */

/*
 * calls: how many run, with GONE once nobody may begin one. Everything else is final after
 * user_fs_new.
 */
struct user_fs {
	CUfileFSOps_t ops;
	void *handle;
	char name[64];
	atomic_uint calls;
	atomic_bool asked;	/* for priorities */
	unsigned int n;
	struct sockaddr addr[ADDRESSES];
};

#define GONE 0x80000000u

/* Signalled when the last call of one that is GONE is over. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t idle;
} leaving = { .lock = PTHREAD_MUTEX_INITIALIZER, .idle = PTHREAD_COND_INITIALIZER };

/* This version has no RDMA: there is no descriptor of the memory to pass. */
static const cufileRDMAInfo_t no_rdma = { .version = 1, .desc_len = 0, .desc_str = "" };

int user_fs_new(const CUfileFSOps_t *ops, void *handle, struct user_fs **out, char *name,
		size_t len)
{
	struct user_fs *u;
	const char *type;
	sockaddr_t *addr = NULL;
	int n = 0;

	if (!ops->read && !ops->write) {
		log_error("cuFileHandleRegister: a user-space file system without read and write: GPUDirect Storage not supported on current file; set them in fs_ops");
		return ERR(IO_NOT_SUPPORTED);
	}
	u = calloc(1, sizeof(*u));
	if (!u)
		return -ENOMEM;
	u->ops = *ops;
	u->handle = handle;
	type = ops->fs_type ? ops->fs_type(handle) : NULL;
	snprintf(u->name, sizeof(u->name), "%s", type ? type : "of no name");
	if (ops->getRDMADeviceList)
		n = ops->getRDMADeviceList(handle, &addr);
	/* the list is the file system's memory: what is needed of it is copied at once */
	if (n > 0 && addr) {
		u->n = n < ADDRESSES ? n : ADDRESSES;
		memcpy(u->addr, addr, u->n * sizeof(u->addr[0]));
		log_info("user-space file system %s offers %d RDMA addresses: this version has no RDMA, its bytes go through host memory",
			 u->name, n);
	}
	snprintf(name, len, "a file of the user-space file system %s", u->name);
	*out = u;
	return 0;
}

/* -- calls -- */

static int enter(struct user_fs *u)
{
	if (!(atomic_fetch_add(&u->calls, 1) & GONE))
		return 0;
	atomic_fetch_sub(&u->calls, 1);
	return ERR(HANDLE_NOT_REGISTERED);
}

static void leave(struct user_fs *u)
{
	if (atomic_fetch_sub(&u->calls, 1) != (GONE | 1))
		return;
	pthread_mutex_lock(&leaving.lock);
	pthread_cond_broadcast(&leaving.idle);
	pthread_mutex_unlock(&leaving.lock);
}

void user_fs_leave(struct user_fs *u)
{
	atomic_fetch_or(&u->calls, GONE);
	pthread_mutex_lock(&leaving.lock);
	while (atomic_load(&u->calls) != GONE)
		pthread_cond_wait(&leaving.idle, &leaving.lock);
	pthread_mutex_unlock(&leaving.lock);
}

void user_fs_free(struct user_fs *u)
{
	free(u);
}

static const char *address_text(const struct sockaddr *addr, char *text, size_t len)
{
	struct sockaddr_in in;

	memcpy(&in, addr, sizeof(in));
	if (addr->sa_family != AF_INET || !inet_ntop(AF_INET, &in.sin_addr, text, len))
		snprintf(text, len, "of family %d", addr->sa_family);
	return text;
}

/* Inside. Once a file, at its first request: which address the file system would take. */
static void ask_priorities(struct user_fs *u, char *buf, size_t size, off_t off)
{
	char text[INET_ADDRSTRLEN + 16];
	int priority, best = -1;
	unsigned int i, at = 0;

	if (!u->n || !u->ops.getRDMADevicePriority || atomic_exchange(&u->asked, true))
		return;
	for (i = 0; i < u->n; i++) {
		priority = u->ops.getRDMADevicePriority(u->handle, buf, size, off, &u->addr[i]);
		if (priority > best) {
			best = priority;
			at = i;
		}
	}
	if (best >= 0)
		log_info("user-space file system %s prefers the RDMA address %s (priority %d): this version has no RDMA",
			 u->name, address_text(&u->addr[at], text, sizeof(text)), best);
}

/* What a function returned: bytes or an error of ours. err: errno after it, which was 0. */
static ssize_t result(const struct user_fs *u, const char *call, ssize_t r, size_t asked, int err)
{
	if (r == -1 && err)
		r = -err;
	if (r >= 0 && (size_t)r <= asked)
		return r;
	if (r < 0 && (r >= -4095 || (r < -CUFILEOP_BASE_ERR && r > -CU_FILE_IO_MAX_ERROR)))
		return r;
	log_error("user-space file system %s: %s of %zu bytes returned %zd: that is neither a number of bytes nor an errno; correct the file system",
		  u->name, call, asked, r);
	return -EIO;
}

static ssize_t none(const struct user_fs *u, const char *call)
{
	log_error("user-space file system %s has no %s: set it in fs_ops", u->name, call);
	return ERR(IO_NOT_SUPPORTED);
}

ssize_t user_fs_read(struct user_fs *u, void *buf, size_t size, off_t off)
{
	int saved = errno;
	size_t done = 0;
	ssize_t r;

	if (!u->ops.read)
		return none(u, "read");
	r = enter(u);
	if (r)
		return r;
	ask_priorities(u, buf, size, off);
	while (done < size) {
		errno = 0;
		r = u->ops.read(u->handle, (char *)buf + done, size - done, off + done, &no_rdma);
		r = result(u, "read", r, size - done, errno);
		if (r == -EINTR)
			continue;
		if (r <= 0)
			break;
		done += r;
	}
	leave(u);
	errno = saved;
	PROBE3(cufio_rdma_read, off, size, r < 0 ? r : (ssize_t)done);
	return r < 0 ? r : (ssize_t)done;
}

ssize_t user_fs_write(struct user_fs *u, const void *buf, size_t size, off_t off)
{
	int saved = errno;
	size_t done = 0;
	ssize_t r;

	if (!u->ops.write)
		return none(u, "write");
	r = enter(u);
	if (r)
		return r;
	ask_priorities(u, (char *)buf, size, off);
	while (done < size) {
		errno = 0;
		r = u->ops.write(u->handle, (const char *)buf + done, size - done, off + done,
				 &no_rdma);
		r = result(u, "write", r, size - done, errno);
		if (r == -EINTR)
			continue;
		if (!r)
			r = -EIO;	/* a write that moves nothing would never end */
		if (r < 0)
			break;
		done += r;
	}
	leave(u);
	errno = saved;
	PROBE3(cufio_rdma_write, off, size, r < 0 ? r : (ssize_t)done);
	return r < 0 ? r : (ssize_t)done;
}
