// SPDX-License-Identifier: MIT
/*
 * ublk.c - a drive of bad habits, by the kernel's ublk: a server in user space that has the
 * drive's content in memory and answers as it is told.
 *
 *   matrix_ublk --size SIZE [--id N] [--block 512|4096] [--seed N] [--hold US] [--short N]
 *               [--fail N] [--bad SECTOR:SECTORS] [--cache] [--lie]
 *
 * --hold US       each request is answered after 0 to US microseconds, by chance: late, and in
 *                 another order
 * --short N       every N-th request, by chance, is done in part; the kernel asks for the rest
 * --fail N        every N-th request, by chance, fails with EIO
 * --bad S:N       requests that touch these sectors of 512 bytes fail with EIO
 * --cache         what was written is safe after a flush, or with FUA, and not before
 * --lie           beside --cache: flushes and FUA are answered and nothing is safe
 *
 * Prints "ready /dev/ublkbN" when the drive is there. Signals: USR1 the power goes, that is requests
 * fail with EIO from now on and with --cache each block of 4 KiB that no flush covers is there or
 * not, by chance; USR2 it is back; TERM, INT: the drive goes. Prints at the end what it did.
 *
 * A request takes effect when it is answered, not before: a flush covers exactly what had been
 * answered. One queue, one thread for it; the main thread talks to /dev/ublk-control.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <liburing.h>
#include <linux/ublk_cmd.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "t_gpu.h"
#include "t_random.h"

/* Commands by number alone are an option of the kernel since 6.4; these it always takes. */
#define ADMIN(name) _IOWR('u', UBLK_CMD_##name, struct ublksrv_ctrl_cmd)
#define IO(name) _IOWR('u', UBLK_IO_##name, struct ublksrv_io_cmd)
#define F_CMD_IOCTL_ENCODE (1ULL << 6)

#define DEPTH 64
#define MOST (512u << 10)	/* bytes of a request */
#define SECTOR 512u
#define PAGE 4096u
#define TICK 20000u		/* microseconds: how soon a signal is seen */

enum power { ON, CUT, OFF };

struct held {
	bool busy;
	double due;
};

struct ublk {
	/* what was asked for */
	uint64_t size, rnd, bad_at, bad_len;
	unsigned int id, block, hold, shorten, fail;
	bool cache, lie;

	int ctrl, dev;
	struct io_uring ring, ctrl_ring;
	const struct ublksrv_io_desc *desc;
	size_t desc_len;
	char *buf;			/* DEPTH times MOST */
	char *now;			/* what a read gives */
	char *safe;			/* --cache: what a flush has covered */
	unsigned char *dirty;		/* a byte for each PAGE of `now` */
	struct held held[DEPTH];
	unsigned int waiting;
	_Atomic enum power power;

	uint64_t requests, flushes, failed, shortened, turned, lost, kept;
	uint64_t order, last_order, came[DEPTH];
};

/* -- what a drive does -- */

static bool one_in(struct ublk *u, unsigned int n)
{
	return n && !t_random_below(&u->rnd, n);
}

static void make_safe(struct ublk *u, uint64_t at, uint64_t len)
{
	uint64_t p;

	if (u->lie)
		return;
	/* a page that FUA covers in part becomes safe as a whole, which a drive may do */
	for (p = at / PAGE; p < (at + len + PAGE - 1) / PAGE; p++) {
		if (!u->dirty[p])
			continue;
		memcpy(u->safe + p * PAGE, u->now + p * PAGE, PAGE);
		u->dirty[p] = 0;
	}
}

static void power_goes(struct ublk *u)
{
	uint64_t p;

	for (p = 0; u->cache && p < u->size / PAGE; p++) {
		if (!u->dirty[p])
			continue;
		u->dirty[p] = 0;
		if (t_random(&u->rnd) >> 63) {
			memcpy(u->safe + p * PAGE, u->now + p * PAGE, PAGE);
			u->kept++;
		} else {
			memcpy(u->now + p * PAGE, u->safe + p * PAGE, PAGE);
			u->lost++;
		}
	}
	u->power = OFF;
}

/* What the request's answer is: bytes, or -errno */
static int perform(struct ublk *u, unsigned int tag)
{
	const struct ublksrv_io_desc *d = &u->desc[tag];
	uint64_t at = d->start_sector * SECTOR, len = (uint64_t)d->nr_sectors * SECTOR;
	char *buf = u->buf + (size_t)tag * MOST;
	unsigned int op = ublksrv_get_op(d), blocks;
	bool data = op == UBLK_IO_OP_READ || op == UBLK_IO_OP_WRITE;

	if (op == UBLK_IO_OP_FLUSH)
		at = len = 0;
	if (at > u->size || len > u->size - at)
		return -EIO;
	if (u->power != ON || one_in(u, u->fail) ||
	    (len && d->start_sector < u->bad_at + u->bad_len &&
	     d->start_sector + d->nr_sectors > u->bad_at)) {
		u->failed++;
		return -EIO;
	}
	blocks = len / u->block;
	if (data && blocks > 1 && one_in(u, u->shorten)) {
		len = (1 + t_random_below(&u->rnd, blocks - 1)) * u->block;
		u->shortened++;
	}
	switch (op) {
	case UBLK_IO_OP_READ:
		memcpy(buf, u->now + at, len);
		return len;
	case UBLK_IO_OP_WRITE:
		memcpy(u->now + at, buf, len);
		if (!u->cache)
			return len;
		memset(u->dirty + at / PAGE, 1, (at + len + PAGE - 1) / PAGE - at / PAGE);
		if (d->op_flags & UBLK_IO_F_FUA)
			make_safe(u, at, len);
		return len;
	case UBLK_IO_OP_FLUSH:
		u->flushes++;
		if (u->cache)
			make_safe(u, 0, u->size);
		return 0;
	}
	return -EOPNOTSUPP;
}

/* -- the queue -- */

static void give(struct ublk *u, unsigned int tag, unsigned int op, int result)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);
	struct ublksrv_io_cmd *cmd;

	if (!sqe) {
		io_uring_submit(&u->ring);
		sqe = io_uring_get_sqe(&u->ring);
	}
	if (!sqe)
		t_die("io_uring: no entry is free");
	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = u->dev;
	sqe->cmd_op = op;
	sqe->user_data = tag;
	cmd = (struct ublksrv_io_cmd *)sqe->cmd;
	cmd->q_id = 0;
	cmd->tag = tag;
	cmd->result = result;
	cmd->addr = (uintptr_t)(u->buf + (size_t)tag * MOST);
}

static void answer(struct ublk *u, unsigned int tag)
{
	int result = perform(u, tag);

	u->held[tag].busy = false;
	u->waiting--;
	u->requests++;
	u->turned += u->came[tag] < u->last_order;
	u->last_order = u->came[tag];
	give(u, tag, IO(COMMIT_AND_FETCH_REQ), result);
}

static void take(struct ublk *u, unsigned int tag)
{
	u->held[tag].busy = true;
	u->held[tag].due = t_now() + (u->hold ? t_random_below(&u->rnd, u->hold) * 1e-6 : 0);
	u->came[tag] = u->order++;
	u->waiting++;
}

/* Answers what is due; returns the microseconds until the next one is. */
static unsigned int answer_due(struct ublk *u)
{
	unsigned int i, tag, first = t_random_below(&u->rnd, DEPTH);
	double now = t_now(), next = now + TICK * 1e-6;

	for (i = 0; i < DEPTH && u->waiting; i++) {
		tag = (first + i) % DEPTH;
		if (!u->held[tag].busy)
			continue;
		if (u->held[tag].due <= now)
			answer(u, tag);
		else if (u->held[tag].due < next)
			next = u->held[tag].due;
	}
	return (next - now) * 1e6 + 1;
}

/* Ends when the kernel has taken back every tag. */
static void *serve(void *arg)
{
	struct ublk *u = arg;
	struct __kernel_timespec ts;
	struct io_uring_cqe *cqe;
	unsigned int tag, left = DEPTH, us;
	int r;

	for (tag = 0; tag < DEPTH; tag++)
		give(u, tag, IO(FETCH_REQ), -1);
	while (left) {
		us = answer_due(u);
		ts = (struct __kernel_timespec){ us / 1000000, us % 1000000 * 1000LL };
		r = io_uring_submit_and_wait_timeout(&u->ring, &cqe, 1, &ts, NULL);
		if (r < 0 && r != -ETIME && r != -EINTR)
			t_die("io_uring: %s", strerror(-r));
		if (u->power == CUT)
			power_goes(u);
		while (!io_uring_peek_cqe(&u->ring, &cqe)) {
			if (cqe->user_data == LIBURING_UDATA_TIMEOUT)
				;
			else if (cqe->res == UBLK_IO_RES_OK)
				take(u, cqe->user_data);
			else if (cqe->res == UBLK_IO_RES_ABORT)
				left--;
			else
				t_die("tag %" PRIu64 ": %s", (uint64_t)cqe->user_data, strerror(-cqe->res));
			io_uring_cqe_seen(&u->ring, cqe);
		}
	}
	return NULL;
}

/* -- the control device -- */

static int control(struct ublk *u, unsigned int op, void *addr, unsigned int len, uint64_t data)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ctrl_ring);
	struct ublksrv_ctrl_cmd *cmd;
	struct io_uring_cqe *cqe;
	int r;

	if (!sqe)
		t_die("io_uring: no entry is free");
	memset(sqe, 0, 2 * sizeof(*sqe));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = u->ctrl;
	sqe->cmd_op = op;
	cmd = (struct ublksrv_ctrl_cmd *)sqe->cmd;
	cmd->dev_id = u->id;
	cmd->queue_id = -1;
	cmd->addr = (uintptr_t)addr;
	cmd->len = len;
	cmd->data[0] = data;
	io_uring_submit(&u->ctrl_ring);
	do
		r = io_uring_wait_cqe(&u->ctrl_ring, &cqe);
	while (r == -EINTR);
	if (r)
		return r;
	r = cqe->res;
	io_uring_cqe_seen(&u->ctrl_ring, cqe);
	return r;
}

static unsigned int shift(unsigned int n)
{
	return __builtin_ctz(n);
}

static void add(struct ublk *u)
{
	struct ublksrv_ctrl_dev_info info = {
		.nr_hw_queues = 1, .queue_depth = DEPTH, .max_io_buf_bytes = MOST, .dev_id = u->id,
		.ublksrv_pid = getpid(), .flags = F_CMD_IOCTL_ENCODE,
	};
	struct ublk_params params = {
		.len = sizeof(params), .types = UBLK_PARAM_TYPE_BASIC,
		.basic = {
			.attrs = u->cache ? UBLK_ATTR_VOLATILE_CACHE | UBLK_ATTR_FUA : 0,
			.logical_bs_shift = shift(u->block), .physical_bs_shift = shift(PAGE),
			.io_opt_shift = shift(PAGE), .io_min_shift = shift(PAGE),
			.max_sectors = MOST / SECTOR, .dev_sectors = u->size / SECTOR,
		},
	};
	char path[32];
	int r;

	u->ctrl = open("/dev/ublk-control", O_RDWR | O_CLOEXEC);
	if (u->ctrl < 0)
		t_die("/dev/ublk-control: %s; is ublk_drv loaded?", strerror(errno));
	r = io_uring_queue_init(4, &u->ctrl_ring, IORING_SETUP_SQE128);
	if (!r)
		r = io_uring_queue_init(2 * DEPTH, &u->ring, 0);
	if (r)
		t_die("io_uring: %s", strerror(-r));
	r = control(u, ADMIN(ADD_DEV), &info, sizeof(info), 0);
	if (r)
		t_die("ublk %u: add: %s", u->id, strerror(-r));
	r = control(u, ADMIN(SET_PARAMS), &params, sizeof(params), 0);
	if (r)
		t_die("ublk %u: parameters: %s", u->id, strerror(-r));
	snprintf(path, sizeof(path), "/dev/ublkc%u", u->id);
	/* devtmpfs makes the node in its own time */
	for (r = 0; (u->dev = open(path, O_RDWR | O_CLOEXEC)) < 0 && r < 100; r++)
		usleep(20000);
	if (u->dev < 0)
		t_die("%s: %s", path, strerror(errno));
	u->desc_len = (DEPTH * sizeof(*u->desc) + PAGE - 1) / PAGE * PAGE;
	u->desc = mmap(NULL, u->desc_len, PROT_READ, MAP_SHARED | MAP_POPULATE, u->dev,
		       UBLKSRV_CMD_BUF_OFFSET);
	if (u->desc == MAP_FAILED)
		t_die("%s: mmap: %s", path, strerror(errno));
}

static void *memory(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		t_die("no memory for %zu bytes", len);
	return p;
}

static void obey(struct ublk *u, const sigset_t *set)
{
	int sig;

	while (!sigwait(set, &sig) && sig != SIGTERM && sig != SIGINT) {
		u->power = sig == SIGUSR1 ? CUT : ON;
		if (sig == SIGUSR1)
			while (u->power == CUT)
				usleep(1000);
		printf("power %s\n", sig == SIGUSR1 ? "off" : "on");
		fflush(stdout);
	}
}

static void run(struct ublk *u)
{
	pthread_t thread;
	sigset_t set;
	int r;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	u->now = memory(u->size);
	u->safe = u->cache ? memory(u->size) : NULL;
	u->dirty = memory(u->size / PAGE);
	u->buf = memory((size_t)DEPTH * MOST);
	/* the drive's own memory must not be written to the drive to be had */
	prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0);
	add(u);
	if (pthread_create(&thread, NULL, serve, u))
		t_die("no thread");
	r = control(u, ADMIN(START_DEV), NULL, 0, getpid());
	if (r)
		t_die("ublk %u: start: %s", u->id, strerror(-r));
	printf("ready /dev/ublkb%u\n", u->id);
	fflush(stdout);
	obey(u, &set);
	control(u, ADMIN(STOP_DEV), NULL, 0, 0);
	pthread_join(thread, NULL);
	/* the deletion waits until nobody has the device, and a mapping counts */
	io_uring_queue_exit(&u->ring);
	munmap((void *)u->desc, u->desc_len);
	close(u->dev);
	r = control(u, ADMIN(DEL_DEV), NULL, 0, 0);
	if (r)
		t_die("ublk %u: delete: %s", u->id, strerror(-r));
	printf("requests %" PRIu64 " flushes %" PRIu64 " failed %" PRIu64 " shortened %" PRIu64
	       " turned %" PRIu64 " lost %" PRIu64 " kept %" PRIu64 "\n", u->requests, u->flushes,
	       u->failed, u->shortened, u->turned, u->lost, u->kept);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "size", required_argument, NULL, 's' },
		{ "id", required_argument, NULL, 'i' },
		{ "block", required_argument, NULL, 'b' },
		{ "seed", required_argument, NULL, 'r' },
		{ "hold", required_argument, NULL, 'h' },
		{ "short", required_argument, NULL, 'S' },
		{ "fail", required_argument, NULL, 'f' },
		{ "bad", required_argument, NULL, 'B' },
		{ "cache", no_argument, NULL, 'c' },
		{ "lie", no_argument, NULL, 'l' },
		{ }
	};
	static struct ublk u = { .block = SECTOR, .rnd = 1 };
	int o;

	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (o) {
		case 's': u.size = t_size(optarg) / PAGE * PAGE; break;
		case 'i': u.id = strtoul(optarg, NULL, 0); break;
		case 'b': u.block = strtoul(optarg, NULL, 0); break;
		case 'r': u.rnd = strtoull(optarg, NULL, 0); break;
		case 'h': u.hold = strtoul(optarg, NULL, 0); break;
		case 'S': u.shorten = strtoul(optarg, NULL, 0); break;
		case 'f': u.fail = strtoul(optarg, NULL, 0); break;
		case 'B':
			if (sscanf(optarg, "%" SCNu64 ":%" SCNu64, &u.bad_at, &u.bad_len) != 2)
				t_die("--bad %s: SECTOR:SECTORS is expected", optarg);
			break;
		case 'c': u.cache = true; break;
		case 'l': u.lie = true; break;
		default: return 2;
		}
	}
	if (!u.size || optind != argc || (u.block != SECTOR && u.block != PAGE))
		t_die("--size SIZE is needed, --block is 512 or 4096; see ublk.c");
	run(&u);
	return 0;
}
