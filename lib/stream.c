// SPDX-License-Identifier: MIT
/* stream.c - cuFileReadAsync, cuFileWriteAsync: requests in the order of a CUDA stream. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#define LOG_MODULE "cufio-stream"
#include "device.h"
#include "driver.h"
#include "errmap.h"
#include "lane.h"
#include "log.h"
#include "probes.h"
#include "rw.h"
#include "slots.h"
#include "stream.h"
#include "workers.h"

#define FIXED_ALL \
	(CU_FILE_STREAM_FIXED_BUF_OFFSET | CU_FILE_STREAM_FIXED_FILE_OFFSET | \
	 CU_FILE_STREAM_FIXED_FILE_SIZE)
#define FLAGS_ALL (FIXED_ALL | CU_FILE_STREAM_PAGE_ALIGNED_INPUTS)

/*
 * One operation. Two things are queued on the stream: a host function that takes the numbers
 * and gives the request to a thread of ours, and a wait for that thread. The wait is
 *
 *	WORD	for a word in pinned memory, by the GPU itself: the thread sets the word and
 *		frees the operation
 *	FUNC	in a second host function, where the GPU cannot wait for a word: the
 *		function waits for `done` and frees the operation
 *
 * Whoever frees it is the last to touch it.
 */
struct operation {
	struct job job;
	enum ogds_op op;
	struct file *file;	/* referenced */
	uint64_t base;
	size_t *size_p;
	off_t *off_p, *buf_off_p;
	ssize_t *bytes_p;
	unsigned int fixed;	/* CU_FILE_STREAM_FIXED_*: these were taken at submission */
	size_t size;
	off_t off, buf_off;
	struct word *word;	/* WORD */
	uint32_t value;
	sem_t done;		/* FUNC */
};

/*
 * Words that streams wait for. A word serves one operation at a time; its value grows with
 * each, and a stream waits until it has at least reached its own, so a word may serve the
 * next one before an earlier stream has looked. lock guards the list, `blocks` and
 * `registered`.
 */
struct word {
	uint32_t *at;		/* in pinned memory */
	uint32_t value;		/* of the last operation that it was given to */
	struct word *next;
};

#define WORDS 1024

struct block {
	struct block *next;
	uint32_t *mem;
	void *ctx;
	struct word word[WORDS];
};

struct known {
	struct known *next;
	CUstream stream;
	unsigned int flags;
};

static struct {
	pthread_mutex_t lock;
	struct word *free;
	struct block *blocks;
	struct known *registered;
	unsigned int flying;	/* operations that have a word */
	bool no_words;		/* the GPU cannot wait for one */
} streams = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* -- words -- */

static struct block *make_block(void *ctx)
{
	struct block *b = calloc(1, sizeof(*b));
	void *mem;
	int i;

	if (!b)
		return NULL;
	if (gpu->host_alloc(ctx, WORDS * sizeof(uint32_t), &mem)) {
		free(b);
		return NULL;
	}
	memset(mem, 0, WORDS * sizeof(uint32_t));
	b->mem = mem;
	b->ctx = ctx;
	for (i = 0; i < WORDS; i++) {
		b->word[i].at = &b->mem[i];
		b->word[i].next = i + 1 < WORDS ? &b->word[i + 1] : NULL;
	}
	return b;
}

/* NULL: there are none here, another way to wait is taken. */
static struct word *take_word(void *ctx)
{
	struct block *b;
	struct word *w;

	pthread_mutex_lock(&streams.lock);
	if (!streams.free && !streams.no_words) {
		b = make_block(ctx);
		if (b) {
			b->next = streams.blocks;
			streams.blocks = b;
			streams.free = b->word;
		}
	}
	w = streams.no_words ? NULL : streams.free;
	if (w) {
		streams.free = w->next;
		streams.flying++;
		w->value++;
	}
	pthread_mutex_unlock(&streams.lock);
	return w;
}

static void give_word(struct word *w)
{
	pthread_mutex_lock(&streams.lock);
	w->next = streams.free;
	streams.free = w;
	streams.flying--;
	pthread_mutex_unlock(&streams.lock);
}

/* -- an operation -- */

static void take_numbers(struct operation *o)
{
	if (!(o->fixed & CU_FILE_STREAM_FIXED_FILE_SIZE))
		o->size = *o->size_p;
	if (!(o->fixed & CU_FILE_STREAM_FIXED_FILE_OFFSET))
		o->off = *o->off_p;
	if (!(o->fixed & CU_FILE_STREAM_FIXED_BUF_OFFSET))
		o->buf_off = *o->buf_off_p;
}

/* What *bytes_p says of r. */
static ssize_t told(ssize_t r)
{
	/* of an operation on a stream the size is said to be wrong, not the range */
	if (r == ERR(INVALID_MAPPING_RANGE))
		r = ERR(INVALID_MAPPING_SIZE);
	return r < 0 ? -errmap_errno(r) : r;
}

static void finish(struct operation *o, ssize_t r)
{
	struct word *w = o->word;

	*o->bytes_p = told(r);
	file_put(o->file);
	if (!w) {
		sem_post(&o->done);
		return;
	}
	__atomic_store_n(w->at, o->value, __ATOMIC_RELEASE);
	give_word(w);
	free(o);
}

static void run(struct job *job)
{
	struct operation *o = (struct operation *)job;
	ssize_t r = driver_enter_open(ERR(DRIVER_CLOSING), ERR(DRIVER_CLOSING));

	if (!r) {
		r = rw_run(o->op, o->file, o->base, o->size, o->off, o->buf_off, true);
		driver_leave();
	}
	finish(o, r);
}

/* On a thread of CUDA's, when the operation's turn has come. Calls no CUDA. */
static void turn(void *arg)
{
	struct operation *o = arg;
	int r;

	take_numbers(o);
	r = driver_enter_open(ERR(DRIVER_CLOSING), ERR(DRIVER_CLOSING));
	if (r) {
		finish(o, r);
		return;
	}
	o->job.run = run;
	if (!workers_submit(&o->job))
		finish(o, ERR(ASYNC_NOT_SUPPORTED));
	driver_leave();
}

static void wait_done(void *arg)
{
	struct operation *o = arg;

	while (sem_wait(&o->done) && errno == EINTR)
		;
	sem_destroy(&o->done);
	free(o);
}

/* -- submission -- */

static unsigned int flags_of(CUstream stream)
{
	unsigned int flags = 0;
	struct known *k;

	pthread_mutex_lock(&streams.lock);
	for (k = streams.registered; k; k = k->next)
		if (k->stream == stream)
			flags = k->flags;
	pthread_mutex_unlock(&streams.lock);
	return flags;
}

/*
 * What a thread of ours must not do while a stream waits for it, because it can wait for
 * the whole GPU: done here. 1: the memory is of a kind where that cannot be.
 */
static int prepare(const void *base, struct device **dev)
{
	struct gpu_ptr mem;
	struct stage st;
	int r;

	*dev = NULL;
	r = gpu->pointer(base, &mem);
	if (r)
		return err_cuda(r);
	if (mem.kind == GPU_MEM_HOST)
		return 0;
	*dev = device_get(mem.dev, &r);
	if (!*dev)
		return r;
	device_own(*dev, &mem);
	if (mem.kind != GPU_MEM_DEVICE || mem.ctx != (*dev)->ctx)
		return 1;
	r = lanes_prepare((*dev)->ctx, workers_cap());
	if (!r)
		r = slots_prepare(*dev, workers_cap());
	if (!r && !nvfs_reason() && !driver_config()->force_compat &&
	    !staging_reason(&(*dev)->staging) && !staging_take(&(*dev)->staging, 1, true, &st))
		staging_give(&(*dev)->staging, &st);
	return r;
}

/* In the caller's own time: everything before it in the stream is over then. */
static int run_here(struct operation *o, CUstream stream)
{
	int r = gpu->stream_sync(stream);

	if (r) {
		file_put(o->file);
		free(o);
		return err_cuda(r);
	}
	take_numbers(o);
	r = 0;
	*o->bytes_p = told(rw_run(o->op, o->file, o->base, o->size, o->off, o->buf_off, false));
	file_put(o->file);
	free(o);
	return r;
}

static int enqueue(struct operation *o, CUstream stream, struct device *dev)
{
	struct word *w = dev ? take_word(dev->ctx) : NULL;
	uint32_t value = w ? w->value : 0;
	int r;

	o->word = w;
	o->value = value;
	if (!w && sem_init(&o->done, 0, 0))
		r = -errno;
	else
		r = gpu->host_func(stream, turn, o);
	if (r) {
		log_error("cuLaunchHostFunc on stream %p: %s: pass a stream of a current context",
			  (void *)stream, r > 0 ? gpu->error(r) : log_errno(r));
		if (w)
			give_word(w);
		file_put(o->file);
		free(o);
		return r > 0 ? err_cuda(r) : r;
	}
	/* from here on the operation may be gone */
	if (!w) {
		r = gpu->host_func(stream, wait_done, o);
		return r ? err_cuda(r) : 0;
	}
	r = gpu->wait_word(stream, w->at, value);
	if (!r)
		return 0;
	/* no such wait on this GPU: wait for this one here, and never use words again */
	log_info("cuStreamWaitValue32: %s: streams wait in host functions", gpu->error(r));
	pthread_mutex_lock(&streams.lock);
	streams.no_words = true;
	pthread_mutex_unlock(&streams.lock);
	r = gpu->stream_sync(stream);
	while (!r && (int32_t)(__atomic_load_n(w->at, __ATOMIC_ACQUIRE) - value) < 0)
		sched_yield();
	return r ? err_cuda(r) : 0;
}

static int submit(enum ogds_op op, CUfileHandle_t fh, void *base, size_t *size_p, off_t *off_p,
		  off_t *buf_off_p, ssize_t *bytes_p, CUstream stream)
{
	const char *call = op == OGDS_OP_READ ? "cuFileReadAsync" : "cuFileWriteAsync";
	struct operation *o;
	struct device *dev;
	int r;

	if (!base || !size_p || !off_p || !buf_off_p || !bytes_p) {
		log_error("%s: a pointer is NULL: pass the buffer, its size, both offsets and the result",
			  call);
		return ERR(INVALID_VALUE);
	}
	if (!workers_cap()) {
		log_error("%s: no threads: set execution.parallel_io to true and max_io_threads to 1 or more",
			  call);
		return ERR(ASYNC_NOT_SUPPORTED);
	}
	o = calloc(1, sizeof(*o));
	if (!o)
		return -ENOMEM;
	o->file = fh ? file_get(fh) : NULL;
	if (!o->file) {
		log_error("%s: %p is no registered handle: register the file first", call, fh);
		free(o);
		return ERR(INVALID_VALUE);
	}
	o->op = op;
	o->base = (uintptr_t)base;
	o->size_p = size_p;
	o->off_p = off_p;
	o->buf_off_p = buf_off_p;
	o->bytes_p = bytes_p;
	take_numbers(o);
	o->fixed = flags_of(stream);
	r = prepare(base, &dev);
	if (op == OGDS_OP_READ)
		PROBE6(cufio_gds_read_async, o->file->user_fd, o->off, o->size, o->buf_off, r,
		       dev ? dev->index : -1);
	else
		PROBE6(cufio_gds_write_async, o->file->user_fd, o->off, o->size, o->buf_off, r,
		       dev ? dev->index : -1);
	if (r > 0)
		return run_here(o, stream);
	if (r < 0) {
		file_put(o->file);
		free(o);
		return r;
	}
	return enqueue(o, stream, dev);
}

CUfileError_t cuFileReadAsync(CUfileHandle_t fh, void *base, size_t *size_p, off_t *off_p,
			      off_t *buf_off_p, ssize_t *bytes_p, CUstream stream)
{
	int r = driver_enter();

	if (!r) {
		r = submit(OGDS_OP_READ, fh, base, size_p, off_p, buf_off_p, bytes_p, stream);
		driver_leave();
	}
	return errmap_status(r);
}

CUfileError_t cuFileWriteAsync(CUfileHandle_t fh, void *base, size_t *size_p, off_t *off_p,
			       off_t *buf_off_p, ssize_t *bytes_p, CUstream stream)
{
	int r = driver_enter();

	if (!r) {
		r = submit(OGDS_OP_WRITE, fh, base, size_p, off_p, buf_off_p, bytes_p, stream);
		driver_leave();
	}
	return errmap_status(r);
}

/* -- promises -- */

/* streams.lock held. Where the stream stands in the list, or its end. */
static struct known **find(CUstream stream)
{
	struct known **at = &streams.registered;

	while (*at && (*at)->stream != stream)
		at = &(*at)->next;
	return at;
}

static int stream_register(CUstream stream, unsigned int flags)
{
	struct known *k;
	int r;

	if (flags & ~FLAGS_ALL)
		log_warn("cuFileStreamRegister: flags 0x%x: only 0x%x have a meaning, the rest is passed over",
			 flags, FLAGS_ALL);
	r = gpu->stream_sync(stream);
	if (r) {
		log_error("cuFileStreamRegister: stream %p: %s: pass a stream that exists",
			  (void *)stream, gpu->error(r));
		return err_cuda(r);
	}
	k = calloc(1, sizeof(*k));
	if (!k)
		return -ENOMEM;
	k->stream = stream;
	k->flags = flags;
	pthread_mutex_lock(&streams.lock);
	if (*find(stream)) {
		r = ERR(INVALID_VALUE);
	} else {
		k->next = streams.registered;
		streams.registered = k;
	}
	pthread_mutex_unlock(&streams.lock);
	if (!r)
		return 0;
	free(k);
	log_error("cuFileStreamRegister: stream %p is registered: deregister it first",
		  (void *)stream);
	return r;
}

static int stream_deregister(CUstream stream)
{
	struct known **at, *k;
	int r = gpu->stream_sync(stream);

	if (r)
		return err_cuda(r);
	pthread_mutex_lock(&streams.lock);
	at = find(stream);
	k = *at;
	if (k)
		*at = k->next;
	pthread_mutex_unlock(&streams.lock);
	if (!k)
		log_error("cuFileStreamDeregister: stream %p is not registered", (void *)stream);
	free(k);
	return k ? 0 : ERR(INVALID_VALUE);
}

/* Neither needs the library open, only CUDA: 0 with *open, or an error. */
static int enter_or_not(const char *call, bool *open)
{
	char what[256];
	int r = driver_enter_if_open();

	*open = r > 0;
	if (r)
		return r < 0 ? r : 0;
	r = gpu->open(what, sizeof(what));
	if (!r)
		return 0;
	driver_log_closed("%s: %s", call, what);
	return err_cuda(r);
}

CUfileError_t cuFileStreamRegister(CUstream stream, unsigned int flags)
{
	bool open;
	int r = enter_or_not("cuFileStreamRegister", &open);

	if (!r)
		r = stream_register(stream, flags);
	if (open)
		driver_leave();
	return errmap_status(r);
}

CUfileError_t cuFileStreamDeregister(CUstream stream)
{
	bool open;
	int r = enter_or_not("cuFileStreamDeregister", &open);

	if (!r)
		r = stream_deregister(stream);
	if (open)
		driver_leave();
	return errmap_status(r);
}

void streams_release(void)
{
	struct block *b;
	struct known *k;

	pthread_mutex_lock(&streams.lock);
	while ((k = streams.registered)) {
		streams.registered = k->next;
		free(k);
	}
	/* a stream that has not come to its operation yet will still look at its word */
	while (!streams.flying && (b = streams.blocks)) {
		streams.blocks = b->next;
		streams.free = NULL;
		gpu->host_free(b->ctx, b->mem, WORDS * sizeof(uint32_t));
		free(b);
	}
	pthread_mutex_unlock(&streams.lock);
}
