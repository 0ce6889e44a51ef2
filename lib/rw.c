// SPDX-License-Identifier: MIT
/* rw.c - cuFileRead, cuFileWrite: arguments, look-up, plan, account. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define LOG_MODULE "cufio"
#include "config.h"
#include "driver.h"
#include "errmap.h"
#include "log.h"
#include "os.h"
#include "pieces.h"
#include "pin_cost.h"
#include "route.h"
#include "route_p2pdma.h"
#include "rw.h"
#include "stats.h"

/* From here on the copy engine costs the processor less than stores of what a drive has read. */
#define DRIVE_MIN ((size_t)128 * 1024)

/* The last request of this thread; no other looks at it. */
static __thread struct ogds_report last;

const char *rw_call_name(enum ogds_op op)
{
	return op == OGDS_OP_READ ? "cuFileRead" : "cuFileWrite";
}

/* -- look-up -- */

static int check_file(const struct request *rq)
{
	int mode = rq->file->flags & O_ACCMODE;

	if (rq->op == OGDS_OP_READ ? mode == O_WRONLY : mode == O_RDONLY) {
		log_error("%s: %s is open for %s only: open it with O_RDWR", rw_call_name(rq->op),
			  rq->file->name, mode == O_WRONLY ? "writing" : "reading");
		return ERR(INVALID_FILE_OPEN_FLAG);
	}
	return 0;
}

/* Unregistered GPU memory: the request must stay in its allocation. */
static int check_allocation(const struct request *rq, uint64_t va, size_t size)
{
	if (va >= rq->mem.base_va && va - rq->mem.base_va <= rq->mem.len &&
	    size <= rq->mem.len - (va - rq->mem.base_va))
		return 0;
	log_error("%s: %zu bytes at 0x%llx leave their allocation of %zu bytes at 0x%llx: make the request smaller",
		  rw_call_name(rq->op), size, (unsigned long long)va, rq->mem.len,
		  (unsigned long long)rq->mem.base_va);
	return -EIO;
}

/* The memory at base is still what was registered, so mem is known. */
static inline bool as_registered(struct request *rq, uint64_t base)
{
	uint64_t id;

	if (!rq->buf || rq->buf->mem.kind != GPU_MEM_DEVICE || gpu->id(base, &id) ||
	    id != rq->buf->mem.id)
		return false;
	rq->mem = rq->buf->mem;
	return true;
}

/* Fills dev, primary of GPU memory. 0 or an error. */
static inline int find_device(struct request *rq)
{
	int r;

	rq->dev = device_get(rq->mem.dev, &r);
	if (!rq->dev)
		return r;
	device_own(rq->dev, &rq->mem);
	rq->primary = rq->mem.ctx == rq->dev->ctx;
	return 0;
}

/* Fills buf, mem, dev, primary. 0 or an error; what it took is in *rq either way. */
static int find_memory(struct request *rq, uint64_t base, uint64_t off, size_t size)
{
	uint64_t va = base + off;
	int r = 0, err;

	rq->buf = buffer_get(base, off, size, &err);
	/* of the base: an offset that leads into another allocation has left its own */
	if (!as_registered(rq, base))
		r = gpu->pointer((void *)(uintptr_t)base, &rq->mem);
	if (r) {
		log_error("%s: 0x%llx: cuPointerGetAttributes: %s: check the GPU with nvidia-smi",
			  rw_call_name(rq->op), (unsigned long long)base, gpu->error(r));
		return err_cuda(r);
	}
	/* what was registered there before it was freed may have been smaller */
	if (err && !buffer_stale(base, &rq->mem)) {
		log_error("%s: %zu bytes at 0x%llx + %llu leave the registered range: register all of it",
			  rw_call_name(rq->op), size, (unsigned long long)base,
			  (unsigned long long)off);
		return err;
	}
	/* freed while registered: the pinned pages are not this memory any more */
	if (rq->buf && (rq->buf->mem.kind != rq->mem.kind || rq->buf->mem.id != rq->mem.id)) {
		log_warn("%s: 0x%llx was freed while registered, the registration is passed over: call cuFileBufDeregister before the memory is freed",
			 rw_call_name(rq->op), (unsigned long long)rq->buf->va);
		buffer_put(rq->buf);
		rq->buf = NULL;
	}
	if (rq->mem.kind == GPU_MEM_HOST) {
		if (driver_config()->allow_system_memory)
			return 0;
		log_error("%s: 0x%llx is host memory and allow_system_memory is false: set it, or use GPU memory",
			  rw_call_name(rq->op), (unsigned long long)va);
		return ERR(CUDA_MEMORY_TYPE_INVALID);
	}
	if (!rq->buf)
		r = check_allocation(rq, va, size);
	return r ? r : find_device(rq);
}

/* -- plan -- */

/*
 * How the CPU sees the memory of a read. Of a context that is not the primary one nobody's
 * stream could prove it.
 */
static void find_bar(struct request *rq, uint64_t va, size_t size)
{
	unsigned int why;

	if (rq->op != OGDS_OP_READ || rq->mem.kind != GPU_MEM_DEVICE || !rq->primary ||
	    rq->file->user ||
	    atomic_load_explicit(&rq->dev->bar.reason, memory_order_relaxed))
		return;
	if (rq->buf) {
		rq->bar = buffer_bar(rq->buf, &why);
	} else {
		rq->bar = bar_cached(rq->dev, &rq->mem, &why);
		rq->bar_held = rq->bar;
	}
	/* its id is that of the mapping at the base: the request may leave it for the next one */
	if (rq->bar && rq->mem.mapped && !bar_holds(rq->bar, va, size)) {
		if (rq->bar_held)
			bar_put(rq->bar);
		rq->bar = NULL;
		rq->bar_held = false;
	}
}

bool rw_find_pages(struct request *rq, struct plan_in *in)
{
	const uint32_t p2p = 1u << OGDS_ROUTE_P2PDMA, nvfs = 1u << OGDS_ROUTE_NVFS;

	in->pages_reason = REASON_PAGES_MEMORY;
	if (!rq->buf || in->module_reason || in->file_pages_reason || in->force_compat ||
	    !(in->routes & p2p) ||
	    (in->routes & nvfs && route_nvfs.probe(in) == REASON_NONE))
		return false;
	in->pages_reason = buffer_pages(rq->buf);
	return !in->pages_reason;
}

/* All but the size of the file. */
static void fill_in(struct request *rq, struct plan_in *in, int64_t off, size_t size, uint64_t va)
{
	const struct config *c = driver_config();
	unsigned int refused = atomic_load(&rq->file->refused);
	bool direct, pages;

	memset(in, 0, sizeof(*in));
	in->op = rq->op;
	in->off = off;
	in->size = size;
	in->va = va;
	in->kind = rq->mem.kind;
	in->file_reason = rq->file->reason ? rq->file->reason : refused;
	in->file_pages_reason = rq->file->pages_reason;
	if (!in->file_pages_reason && rq->dev && device_no_p2p(rq->dev, file_device(rq->file)))
		in->file_pages_reason = REASON_PAGES_DEVICE;
	in->module_reason = nvfs_reason();
	in->registered = rq->buf;
	in->pin_reason = rq->buf ? rq->buf->reason : REASON_NOT_REGISTERED;
	in->other_context = rq->dev && !rq->primary;
	in->strict = atomic_load(&rq->file->strict);
	in->force_compat = c->force_compat;
	in->allow_compat = c->allow_compat;
	in->routes = c->routes;
	pages = rw_find_pages(rq, in);
	direct = rq->dev && (!in->file_reason || pages) && !in->module_reason &&
		 !c->force_compat && c->routes & OGDS_DIRECT_MASK;
	/* a request of whole blocks that can go direct has nothing to store: it makes no mapping */
	if (c->routes & 1u << OGDS_ROUTE_BAR && !(direct && !((off | size | va) % PLAN_BLOCK)))
		find_bar(rq, va, size);
	in->bar = rq->bar;
	rq->by_drive = !direct && rq->dev && rq->primary && size >= DRIVE_MIN &&
		       file_by_drive(rq->file, rq->op == OGDS_OP_READ, size, off);
	/* a drive is slower than either way: what costs the processor least */
	in->bar_quicker = in->bar && !rq->by_drive &&
			  way_choose(&rq->dev->ways, size) == WAY_STORE;
	if (direct) {
		in->staging_reason = staging_reason(&rq->dev->staging);
		in->pin_now = !rq->buf && !rq->deferred && pin_cost_worth(&rq->dev->cost, size);
	}
}

/* `quick`: a piece may be longer than the file. */
static int make_plan(struct request *rq, struct plan *p, int64_t off, size_t size, uint64_t va,
		     bool quick)
{
	struct plan_in *in = &rq->in;

	fill_in(rq, in, off, size, va);
	if (quick && plan_quick(in, p))
		return 0;
	in->file_size = rq->op == OGDS_OP_READ ? file_size(rq->file) : 0;
	if (in->file_size < 0)
		return in->file_size;
	plan_make(in, p);
	return 0;
}

static void say_plan(struct request *rq, const struct plan *p)
{
	const struct facts_reason_text *t;
	unsigned int i, why;

	for (i = 0; i < p->n; i++) {
		why = p->piece[i].reason;
		if (!plan_whole(p->piece[i].file_off, p->piece[i].size) ||
		    OGDS_DIRECT_MASK & 1u << p->piece[i].route ||
		    p->piece[i].route == OGDS_ROUTE_HOST || !file_say_once(rq->file, why))
			continue;
		t = facts_reason(why);
		log_info("%s: %s goes through host memory: %s: %s; %s", rw_call_name(rq->op),
			 rq->file->name, t->id, t->text, t->remedy);
	}
}

static ssize_t move(struct request *rq, uint64_t base, size_t size, int64_t off, uint64_t buf_off)
{
	const struct facts_reason_text *t;
	struct plan p;
	int r;

	r = check_file(rq);
	if (!r)
		r = find_memory(rq, base, buf_off, size);
	if (!r)
		r = make_plan(rq, &p, off, size, base + buf_off, true);
	if (r)
		return r;
	if (p.error) {
		t = facts_reason(p.reason);
		last.reason = p.reason;
		last.refused_by = p.refused_by;
		log_error("%s: %s: %zu bytes at %lld would not go direct, and %s is set: %s: %s; %s",
			  rw_call_name(rq->op), rq->file->name, size, (long long)off,
			  p.refused_by == REASON_STRICT ? "strict" :
			  p.refused_by == REASON_ROUTE_DENIED ? "a list of routes" :
								"allow_compat_mode false",
			  t->id, t->text, t->remedy);
		return p.error;
	}
	if (log_on(LOG_INFO))
		say_plan(rq, &p);
	return pieces_run(rq, &p, off, base + buf_off);
}

static int check_numbers(const struct request *rq, uint64_t base, size_t size, int64_t off,
			 int64_t buf_off)
{
	if (off < 0 || size > (size_t)INT64_MAX || off > INT64_MAX - (int64_t)size) {
		log_error("%s: %s: %zu bytes at file offset %lld: give an offset of 0 or more and a size that a file can have",
			  rw_call_name(rq->op), rq->file->name, size, (long long)off);
		return ERR(INVALID_VALUE);
	}
	if (buf_off < 0 || base + buf_off < base || base + buf_off + size < base) {
		log_error("%s: %s: buffer 0x%llx with offset %lld: give 0 or more, inside the buffer",
			  rw_call_name(rq->op), rq->file->name, (unsigned long long)base,
			  (long long)buf_off);
		return ERR(INTERNAL_ERROR);
	}
	return 0;
}

static void begin(enum ogds_op op)
{
	uint64_t seq = last.sequence + 1;

	memset(&last, 0, sizeof(last));
	last.struct_size = sizeof(last);
	last.sequence = seq;
	last.op = op;
}

/* The thread's report gets the result. */
static ssize_t note(ssize_t r)
{
	last.result = r < 0 ? -1 : r;
	last.error = r < 0 ? errmap_errno(r) : 0;
	return r;
}

static ssize_t on_file(struct request *rq, uint64_t base, size_t size, int64_t off,
		       int64_t buf_off)
{
	ssize_t r = check_numbers(rq, base, size, off, buf_off);

	if (!r && size)
		r = move(rq, base, size, off, buf_off);
	if (rq->bar_held)
		bar_put(rq->bar);
	rq->bar = NULL;
	rq->bar_held = false;
	if (rq->buf)
		buffer_put(rq->buf);
	rq->buf = NULL;
	return r;
}

/* Before a request that will be counted: stats_on(). */
static void count_from_now(struct request *rq, struct stats_spent *spent)
{
	memset(spent, 0, sizeof(*spent));
	rq->began = os->now_ns();
	rq->spent = spent;
}

/* At the end of a request; `how`: as what it counts. */
static void account(const struct request *rq, void (*how)(const struct stats_done *d), bool failed)
{
	how(&(struct stats_done){
		.op = rq->op, .rep = &last, .spent = rq->spent, .file = rq->file,
		.dev = rq->dev ? rq->dev->index : -1, .ns = os->now_ns() - rq->began,
		.failed = failed });
}

/* The report of a request that nobody's thread did: added to those of its file. */
static void add_up(struct file *f)
{
	struct ogds_report *s = &f->sum;
	unsigned int i;

	pthread_mutex_lock(&f->sum_lock);
	s->sequence++;
	s->op = last.op;
	if (last.result > 0)
		s->result += last.result;
	if (!s->error)
		s->error = last.error;
	for (i = 0; i < OGDS_ROUTE_SLOTS; i++)
		s->bytes[i] += last.bytes[i];
	s->whole_bytes += last.whole_bytes;
	s->whole_direct += last.whole_direct;
	s->edge_bytes += last.edge_bytes;
	s->witnessed += last.witnessed;
	s->retried += last.retried;
	if (!s->reason)
		s->reason = last.reason;
	if (!s->refused_by)
		s->refused_by = last.refused_by;
	pthread_mutex_unlock(&f->sum_lock);
}

ssize_t rw_run(enum ogds_op op, struct file *file, uint64_t base, size_t size, int64_t off,
	       int64_t buf_off, bool deferred)
{
	struct request rq = { .op = op, .file = file, .deferred = deferred, .rep = &last };
	struct stats_spent spent;
	ssize_t r;

	begin(op);
	if (stats_on())
		count_from_now(&rq, &spent);
	r = note(on_file(&rq, base, size, off, buf_off));
	/* what is not a stream's is an entry of a batch */
	if (rq.spent)
		account(&rq, deferred ? stats_io : stats_batch_entry, r < 0);
	add_up(file);
	return r;
}

/* -- many at a time -- */

bool rw_by_pages(const struct file *f)
{
	const struct config *c = driver_config();
	bool nvfs = c->routes & 1u << OGDS_ROUTE_NVFS && !f->reason && !atomic_load(&f->refused);

	return c->routes & 1u << OGDS_ROUTE_P2PDMA && !nvfs && !c->force_compat &&
	       !f->pages_reason && !nvfs_reason();
}

bool rw_pages_begin(struct rw_pages *p, enum ogds_op op, struct file *file, uint64_t base,
		    size_t size, int64_t off, int64_t buf_off)
{
	struct request *rq = &p->rq;
	struct plan plan = { 0 };
	int err;

	p->va = base + buf_off;
	if (!size || size > RW_PAGES_MOST || ((uint64_t)off | size | p->va) % PLAN_BLOCK ||
	    off > INT64_MAX - (int64_t)size)
		return false;
	memset(rq, 0, sizeof(*rq));
	rq->op = op;
	rq->file = file;
	rq->buf = buffer_get(base, buf_off, size, &err);
	if (as_registered(rq, base) && !find_device(rq)) {
		fill_in(rq, &rq->in, off, size, p->va);
		rq->in.file_size = off + (int64_t)size;
		plan_make(&rq->in, &plan);
	}
	if (plan.n != 1 || plan.error || plan.piece[0].route != OGDS_ROUTE_P2PDMA) {
		if (rq->buf)
			buffer_put(rq->buf);
		return false;
	}
	p->reason = plan.piece[0].reason;
	if (stats_on())
		count_from_now(rq, &p->spent);
	p2pdma_io(rq, off, size, p->va, &p->io);
	return true;
}

bool rw_pages_end(struct rw_pages *p, ssize_t r)
{
	struct request *rq = &p->rq;
	bool moved = p2pdma_moved(rq, &p->io, p->va, r);

	if (moved) {
		begin(rq->op);
		if (rq->spent)
			rq->spent->ns[OGDS_ROUTE_P2PDMA] = os->now_ns() - rq->began;
		rq->rep = &last;
		pieces_note(rq, OGDS_ROUTE_P2PDMA, p->io.off, r, p->va, r, r, p->reason);
		note(r);
		if (rq->spent)
			account(rq, stats_batch_entry, false);
		add_up(rq->file);
	}
	buffer_put(rq->buf);
	return moved;
}

/* Enters, and finds the file. An error: neither was done. Closed, it has no files: no open. */
static int enter_file(enum ogds_op op, CUfileHandle_t fh, struct file **file)
{
	int r = driver_enter_if_open();

	if (r < 0)
		return r;
	if (!r) {
		driver_log_closed("%s: %p is no registered handle, and the library is not open: register the file first",
				  rw_call_name(op), fh);
		return ERR(HANDLE_NOT_REGISTERED);
	}
	*file = file_borrow(fh);
	if (*file)
		return 0;
	log_error("%s: %p is no registered handle: register the file first", rw_call_name(op), fh);
	stats_count(op == OGDS_OP_READ ? STATS_READ : STATS_WRITE, false);
	driver_leave();
	return ERR(HANDLE_NOT_REGISTERED);
}

static ssize_t request(enum ogds_op op, CUfileHandle_t fh, uint64_t base, size_t size, int64_t off,
		       int64_t buf_off)
{
	struct request rq = { .op = op, .rep = &last };
	struct stats_spent spent;
	ssize_t r;

	if (!fh || !base) {
		log_error("%s: %s is NULL: pass a %s", rw_call_name(op), fh ? "the buffer" : "the handle",
			  fh ? "pointer to memory" : "handle of cuFileHandleRegister");
		return -EINVAL;
	}
	r = enter_file(op, fh, &rq.file);
	if (r)
		return r;
	if (stats_on())
		count_from_now(&rq, &spent);
	r = on_file(&rq, base, size, off, buf_off);
	if (rq.spent)
		account(&rq, stats_io, r < 0);
	file_return(rq.file);
	driver_leave();
	return r;
}

/* Pieces of memory one after another; ends at the first that is short or fails. */
static ssize_t vector(enum ogds_op op, CUfileHandle_t fh, const CUfileIOVec_t *iov, size_t n,
		      int64_t off, unsigned int flags)
{
	struct request rq = { .op = op, .rep = &last };
	struct stats_spent spent;
	size_t i, total = 0;
	ssize_t r;

	if (!fh || (n && !iov) || flags) {
		log_error("%sv: %s: pass a handle, pieces, and 0 for the flags", rw_call_name(op),
			  flags ? "flags are set" : fh ? "the pieces are NULL" : "the handle is NULL");
		return -EINVAL;
	}
	r = enter_file(op, fh, &rq.file);
	if (r)
		return r;
	if (stats_on())
		count_from_now(&rq, &spent);
	for (i = 0; i < n && r >= 0; i++) {
		if (!iov[i].len)
			continue;
		if (!iov[i].base || iov[i].len > (size_t)INT64_MAX - total) {
			log_error("%sv: %s: piece %zu has no memory or no sane length: correct it",
				  rw_call_name(op), rq.file->name, i);
			r = -EINVAL;
			break;
		}
		r = on_file(&rq, (uintptr_t)iov[i].base, iov[i].len, off + (int64_t)total, 0);
		if (r >= 0)
			total += r;
		if (r >= 0 && (size_t)r < iov[i].len)
			break;
	}
	if (rq.spent)
		account(&rq, stats_io, r < 0 && !total);
	file_return(rq.file);
	driver_leave();
	return r < 0 && !total ? r : (ssize_t)total;
}

/* The border: -1 and errno. */
static ssize_t finish(ssize_t r)
{
	note(r);
	if (r >= 0)
		return r;
	errno = last.error;
	return -1;
}

ssize_t cuFileRead(CUfileHandle_t fh, void *base, size_t size, off_t off, off_t buf_off)
{
	begin(OGDS_OP_READ);
	return finish(request(OGDS_OP_READ, fh, (uintptr_t)base, size, off, buf_off));
}

ssize_t cuFileWrite(CUfileHandle_t fh, const void *base, size_t size, off_t off, off_t buf_off)
{
	begin(OGDS_OP_WRITE);
	return finish(request(OGDS_OP_WRITE, fh, (uintptr_t)base, size, off, buf_off));
}

ssize_t cuFileReadv(CUfileHandle_t fh, const CUfileIOVec_t *iov, size_t iovcnt, off_t off,
		    unsigned int flags)
{
	begin(OGDS_OP_READ);
	return finish(vector(OGDS_OP_READ, fh, iov, iovcnt, off, flags));
}

ssize_t cuFileWritev(CUfileHandle_t fh, const CUfileIOVec_t *iov, size_t iovcnt, off_t off,
		     unsigned int flags)
{
	begin(OGDS_OP_WRITE);
	return finish(vector(OGDS_OP_WRITE, fh, iov, iovcnt, off, flags));
}

/* -- what opengds.h adds -- */

static bool known_size(const struct ogds_report *report)
{
	return report && report->struct_size >= sizeof(size_t) &&
	       report->struct_size <= 64 * sizeof(*report);
}

/* What the caller's structure has room for; its size stays. */
static void give_report(struct ogds_report *to, const struct ogds_report *from)
{
	size_t n = to->struct_size < sizeof(*from) ? to->struct_size : sizeof(*from);

	memcpy((char *)to + sizeof(size_t), (const char *)from + sizeof(size_t),
	       n - sizeof(size_t));
}

int ogds_last_io(struct ogds_report *report)
{
	if (!known_size(report))
		return -EINVAL;
	give_report(report, &last);
	return 0;
}

int ogds_handle_io(CUfileHandle_t fh, struct ogds_report *report)
{
	struct file *f;
	int r;

	if (!known_size(report))
		return -EINVAL;
	r = driver_enter();
	if (r)
		return -errmap_errno(r);
	f = file_get(fh);
	if (f) {
		pthread_mutex_lock(&f->sum_lock);
		give_report(report, &f->sum);
		memset(&f->sum, 0, sizeof(f->sum));
		pthread_mutex_unlock(&f->sum_lock);
		file_put(f);
	}
	driver_leave();
	return f ? 0 : -EINVAL;
}

int ogds_explain(CUfileHandle_t fh, const void *ptr, size_t size, off_t off, struct ogds_plan *plan)
{
	struct request rq = { 0 };
	struct plan p;
	unsigned int i;
	int r;

	if (!ptr || !plan || plan->struct_size != sizeof(*plan) || plan->op > OGDS_OP_WRITE)
		return -EINVAL;
	rq.op = plan->op;
	memset((char *)plan + offsetof(struct ogds_plan, npieces), 0,
	       sizeof(*plan) - offsetof(struct ogds_plan, npieces));
	r = driver_enter();
	if (r)
		return -errmap_errno(r);
	rq.file = file_get(fh);
	r = rq.file ? check_numbers(&rq, (uintptr_t)ptr, size, off, 0) : -EINVAL;
	if (r) {
		r = -EINVAL;
		goto out;
	}
	r = check_file(&rq);
	if (!r && size)
		r = find_memory(&rq, (uintptr_t)ptr, 0, size);
	if (!r && size)
		r = make_plan(&rq, &p, off, size, (uintptr_t)ptr, false);
	if (r) {
		plan->error = errmap_errno(r);
		r = 0;
	} else if (size) {
		plan->npieces = p.n;
		plan->error = errmap_errno(p.error);
		plan->reason = p.reason;
		plan->refused_by = p.refused_by;
		plan->whole_bytes = p.whole;
		plan->whole_direct = p.whole_direct;
		for (i = 0; i < p.n; i++)
			plan->piece[i] = p.piece[i];
	}
	if (rq.bar_held)
		bar_put(rq.bar);
	if (rq.buf)
		buffer_put(rq.buf);
out:
	if (rq.file)
		file_put(rq.file);
	driver_leave();
	return r;
}

const char *ogds_route_name(uint32_t route)
{
	return route < OGDS_ROUTES ? route_table[route]->name : "unknown";
}

const char *ogds_reason_id(uint32_t reason)
{
	return facts_reason(reason)->id;
}

const char *ogds_reason_text(uint32_t reason)
{
	return facts_reason(reason)->text;
}

const char *ogds_reason_remedy(uint32_t reason)
{
	return facts_reason(reason)->remedy;
}
