// SPDX-License-Identifier: MIT
/*
 * cufile_prop.c - the property test: random (file offset, size, buffer offset) triples
 * through cuFileRead and cuFileWrite, against pread and pwrite on a second file.
 *
 *   cufile_prop --file F --mirror M [--seed N] [--triples N] [--holes N] [--max-bytes S]
 *               [--file-size S] [--card N] [--proof K] [--no-direct]
 *
 * After every step: the return value is that of pread or pwrite; GPU memory, 64 KiB around
 * the target included, is the mirror's bytes inside and poison outside; what was written to
 * the file, 8 KiB around it included, is what the mirror holds; the report adds up, and
 * every whole 4-KiB block went direct. Then the same without the last demand on a file with
 * holes. In a guest with a proof daemon every K-th step is also seen from outside: the BAR
 * traffic is the reported direct bytes, GPU memory has the digest of the expected image; and
 * so is the sum over all steps, exactly where no request had to be done again. Stops at
 * the first breach and prints what repeats it.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cufile_prop.h"
#include "gpu_sim.h"
#include "t_checkpoint.h"

static off_t file_end(int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		t_die("fstat: %s", strerror(errno));
	return st.st_size;
}

static void describe(const struct prop *p, const struct step *s, char *text, size_t len)
{
	snprintf(text, len, "%s file+%lld size %zu buffer+%zu (%s, %s)%s, file of %lld",
		 s->write ? "write" : "read", (long long)s->off, s->size, s->target,
		 s->registered ? "registered" : "not registered",
		 s->advanced ? "pointer moved on" : "by offset", s->hole ? ", holes" : "",
		 (long long)file_end(p->mfd));
}

/* -- memory and files -- */

/* The target with its guards, in whole blocks. */
static void window(const struct step *s, size_t *at, size_t *len)
{
	size_t end = (s->target + s->size + GPU_GUARD + T_BLOCK - 1) & ~(T_BLOCK - 1UL);

	*at = (s->target - GPU_GUARD) & ~(T_BLOCK - 1UL);
	*len = end - *at;
}

static void put_poison(struct prop *p, CUdeviceptr mem, size_t at, size_t len)
{
	size_t n;

	for (; len; at += n, len -= n) {
		n = prop_least(len, CHUNK);
		t_gpu_put(mem + at, p->poison, n);
	}
}

static void fresh(struct prop *p, char *buf, size_t len)
{
	uint64_t w = prop_next(p), *word = (uint64_t *)buf;
	size_t i;

	for (i = 0; i < (len + 7) / 8; i++)
		word[i] = w += 0xd6e8feb86659fd93ULL;
}

static void mirror_write(struct prop *p, const char *buf, size_t len, off_t off)
{
	if (pwrite(p->mfd, buf, len, off) != (ssize_t)len)
		t_die("%s: write: %s", p->mirror, strerror(errno));
}

static void mirror_read(struct prop *p, char *buf, size_t len, off_t off)
{
	if (pread(p->mfd, buf, len, off) != (ssize_t)len)
		t_die("%s: read at %lld: short or failed", p->mirror, (long long)off);
}

/* Poison all around; new data in the target of a write, and in the mirror. */
static void prepare(struct prop *p, const struct step *s)
{
	CUdeviceptr mem = p->mem[s->registered];
	size_t at, len, done, n;

	window(s, &at, &len);
	put_poison(p, mem, at, len);
	for (done = 0; s->write && done < s->size; done += n) {
		n = prop_least(s->size - done, CHUNK);
		fresh(p, p->a, n);
		t_gpu_put(mem + s->target + done, p->a, n);
		mirror_write(p, p->a, n, s->off + done);
	}
}

static int differ(const char *what, const char *got, const char *want, size_t len, size_t at)
{
	size_t i;

	if (!memcmp(got, want, len))
		return 0;
	for (i = 0; got[i] == want[i]; i++)
		;
	fprintf(stderr, "  %s: byte %zu is %02x, expected %02x\n", what, at + i,
		(unsigned char)got[i], (unsigned char)want[i]);
	return -EILSEQ;
}

/* GPU memory against the image of it: poison, and the mirror's `moved` bytes. */
static int check_gpu(struct prop *p, const struct step *s, size_t moved, char hex[65])
{
	size_t win, len, at, n, lo, hi;
	struct t_sha256 sha;

	window(s, &win, &len);
	t_sha256_init(&sha);
	for (at = win; at < win + len; at += n) {
		n = prop_least(win + len - at, CHUNK);
		memcpy(p->b, p->poison, n);
		lo = at > s->target ? at : s->target;
		hi = prop_least(at + n, s->target + moved);
		if (lo < hi)
			mirror_read(p, p->b + (lo - at), hi - lo, s->off + (lo - s->target));
		t_gpu_get(p->a, p->mem[s->registered] + at, n);
		if (differ("GPU memory", p->a, p->b, n, at))
			return -EILSEQ;
		if (hex)
			t_sha256_add(&sha, p->b, n);
	}
	if (hex)
		t_sha256_end(&sha, hex);
	return 0;
}

/* Whole blocks that cover the range, by O_DIRECT where the file system has it. */
static int check_file(struct prop *p, off_t from, off_t to)
{
	off_t end = file_end(p->mfd);
	ssize_t got;
	size_t n;

	if (file_end(p->look) != end) {
		fprintf(stderr, "  %s has %lld bytes, expected %lld\n", p->file,
			(long long)file_end(p->look), (long long)end);
		return -EILSEQ;
	}
	from = from > 0 ? from & ~(T_BLOCK - 1L) : 0;
	to = prop_least(to, end);
	for (; from < to; from += CHUNK) {
		got = pread(p->look, p->a, CHUNK, from);
		n = prop_least(end - from, CHUNK);
		if (got != (ssize_t)n) {
			fprintf(stderr, "  %s: read of %zu at %lld: %zd: %s\n", p->file, n,
				(long long)from, got, got < 0 ? strerror(errno) : "short");
			return -EIO;
		}
		mirror_read(p, p->b, n, from);
		if (differ("file", p->a, p->b, n, from))
			return -EILSEQ;
	}
	return 0;
}

/* -- the step -- */

static uint64_t blocks_in(off_t off, size_t len)
{
	off_t from = (off + T_BLOCK - 1) & ~(T_BLOCK - 1L), to = (off + len) & ~(T_BLOCK - 1L);

	return to > from ? to - from : 0;
}

static uint64_t sum_of(const struct ogds_report *r, uint32_t mask)
{
	uint64_t sum = 0;
	int i;

	for (i = 0; i < OGDS_ROUTE_SLOTS; i++)
		if (mask & 1u << i)
			sum += r->bytes[i];
	return sum;
}

static int bad_report(const char *what, uint64_t got, uint64_t want)
{
	fprintf(stderr, "  report: %s is %" PRIu64 ", expected %" PRIu64 "\n", what, got, want);
	return -EPROTO;
}

static int check_report(struct prop *p, const struct step *s, size_t moved,
			const struct ogds_report *r)
{
	uint64_t whole = blocks_in(s->off, moved);

	if (r->sequence != p->requests)
		return bad_report("sequence", r->sequence, p->requests);
	if (r->result != (int64_t)moved)
		return bad_report("result", r->result, moved);
	if (r->op != (s->write ? OGDS_OP_WRITE : OGDS_OP_READ))
		return bad_report("op", r->op, s->write);
	if (sum_of(r, ~0u) != moved)
		return bad_report("the sum over the routes", sum_of(r, ~0u), moved);
	if (r->bytes[OGDS_ROUTE_HOST])
		return bad_report("route host", r->bytes[OGDS_ROUTE_HOST], 0);
	if (r->whole_bytes != whole)
		return bad_report("whole_bytes", r->whole_bytes, whole);
	if (r->edge_bytes != moved - whole)
		return bad_report("edge_bytes", r->edge_bytes, moved - whole);
	if (r->whole_direct > sum_of(r, OGDS_DIRECT_MASK) || r->whole_direct > whole)
		return bad_report("whole_direct", r->whole_direct, sum_of(r, OGDS_DIRECT_MASK));
	if (!p->must_be_direct || s->hole)
		return 0;
	if (r->whole_direct != whole) {
		fprintf(stderr, "  not direct: %s: %s\n", ogds_reason_id(r->reason),
			ogds_reason_text(r->reason));
		return bad_report("whole_direct", r->whole_direct, whole);
	}
	return r->retried ? bad_report("retried", r->retried, 0) : 0;
}

/*
 * What crosses the BAR for that: the bytes that went direct; a read through staging memory
 * takes the whole blocks around its edges along.
 */
static uint64_t bar_bytes(const struct step *s, size_t moved, const struct ogds_report *r)
{
	uint64_t direct = sum_of(r, OGDS_DIRECT_MASK);
	off_t end = s->off + moved;

	if (s->write || !moved || r->bytes[OGDS_ROUTE_STAGED] != moved)
		return direct;
	return ((end + T_BLOCK - 1) & ~(T_BLOCK - 1L)) - (s->off & ~(T_BLOCK - 1L));
}

/* Over a hole a request fails after the drive moved what lies around it: bytes, at most. */
static uint64_t around_holes(const struct ogds_report *r)
{
	return r->retried ? r->retried + 2 * T_BLOCK : 0;
}

static void account(struct prop *p, const struct step *s, size_t moved,
		    const struct ogds_report *r)
{
	int i;

	p->done[s->write]++;
	p->moved += moved;
	p->big += s->size > BIG;
	p->whole += r->whole_bytes;
	p->edge += r->edge_bytes;
	p->witnessed += r->witnessed;
	p->direct += sum_of(r, OGDS_DIRECT_MASK);
	p->bar += bar_bytes(s, moved, r);
	p->slack += around_holes(r);
	for (i = 0; i < OGDS_ROUTES; i++)
		p->route[i] += r->bytes[i];
}

static ssize_t submit(struct prop *p, const struct step *s)
{
	char *mem = (char *)(uintptr_t)p->mem[s->registered];
	size_t skip = s->registered ? p->reg_at : 0;
	void *base = s->advanced ? mem + s->target : mem + skip;
	off_t off = s->advanced ? 0 : s->target - skip;

	p->requests++;
	if (s->write)
		return cuFileWrite(p->fh, base, s->size, s->off, off);
	return cuFileRead(p->fh, base, s->size, s->off, off);
}

/* Before: the target of a read is poison, seen from outside, so its bytes come from now. */
static int look_before(struct prop *p, const struct step *s, const struct t_range *range)
{
	struct t_proof proof;

	if (t_checkpoint(T_MARK_BEGIN, "step", range, range ? 1 : 0, &proof))
		return -EIO;
	if (range && !s->write && !proof.poisoned) {
		fprintf(stderr, "  GPU memory is not poison before, seen from outside\n");
		return -EILSEQ;
	}
	return 0;
}

static int look_after(uint64_t bar, uint64_t slack, int card, const char *hex,
		      const struct t_range *range)
{
	struct t_proof proof;

	if (t_checkpoint(T_MARK_END, "step", range, range ? 1 : 0, &proof))
		return -EIO;
	if (proof.bar_all < bar || proof.bar_all > bar + slack ||
	    proof.bar[card] != proof.bar_all) {
		fprintf(stderr, "  the drives moved %" PRIu64 " bytes over BARs, %" PRIu64
			" over card %d; by the report %" PRIu64 "\n", proof.bar_all,
			proof.bar[card], card, bar);
		return -EILSEQ;
	}
	if (range && strcmp(proof.sha256, hex)) {
		fprintf(stderr, "  GPU memory seen from outside is %.12s, expected %.12s\n",
			proof.sha256, hex);
		return -EILSEQ;
	}
	return 0;
}

static int run_step(struct prop *p, const struct step *s, bool look)
{
	struct ogds_report r = OGDS_REPORT_INIT;
	off_t end = file_end(p->mfd);
	bool hash = look && (s->size <= SEEN_MAX || !p->seen_big);
	struct t_range range;
	size_t at, len, want;
	char hex[65];
	ssize_t got;
	int err;

	want = s->write ? s->size : s->off < end ? prop_least(s->size, end - s->off) : 0;
	window(s, &at, &len);
	range = (struct t_range){ p->mem[s->registered] + at, len };
	prepare(p, s);
	if (look && look_before(p, s, hash ? &range : NULL))
		return -EIO;

	got = submit(p, s);
	if (got != (ssize_t)want) {
		fprintf(stderr, "  returned %zd (%s), expected %zu\n", got,
			got >= 0 ? "short" : IS_CUFILE_ERR(errno) ? CUFILE_ERRSTR(errno) :
			strerror(errno), want);
		return -EIO;
	}
	err = ogds_last_io(&r);
	if (err)
		fprintf(stderr, "  ogds_last_io: %s\n", strerror(-err));
	if (err || check_report(p, s, want, &r) || check_gpu(p, s, want, hash ? hex : NULL))
		return -EILSEQ;
	if (look && look_after(bar_bytes(s, want, &r), around_holes(&r), p->card, hex,
			       hash ? &range : NULL))
		return -EILSEQ;
	p->seen += look;
	p->seen_big |= hash && s->size > SEEN_MAX;
	if (check_file(p, s->write ? s->off - (off_t)FILE_GUARD : end,
		       s->write ? s->off + s->size + FILE_GUARD : end))
		return -EILSEQ;
	account(p, s, want, &r);
	return 0;
}

/* -- around the steps -- */

static void cufile_ok(CUfileError_t status, const char *what)
{
	if (status.err != CU_FILE_SUCCESS)
		t_die("%s: %d: %s", what, status.err, cufileop_status_error(status.err));
}

/* Another part of the allocation each time; targets always lie inside. */
static void reregister(struct prop *p, bool first)
{
	char *mem = (char *)(uintptr_t)p->mem[1];
	size_t end;

	if (!first)
		cufile_ok(cuFileBufDeregister(mem + p->reg_at), "cuFileBufDeregister");
	p->reg_at = prop_least(prop_interesting(p, prop_below(p, GPU_GUARD)), GPU_GUARD);
	end = ALLOC - prop_below(p, 2) * prop_below(p, GPU_GUARD);
	cufile_ok(cuFileBufRegister(mem + p->reg_at, end - p->reg_at, 0), "cuFileBufRegister");
}

/* Never longer: that would make a hole. */
static void both_truncate(struct prop *p, off_t end)
{
	end = prop_least(end, file_end(p->mfd));
	if (ftruncate(p->fd, end) || ftruncate(p->mfd, end))
		t_die("ftruncate to %lld: %s", (long long)end, strerror(errno));
}

/* Not where the mirror has no holes to punch: then they come from writes past the end. */
static void both_punch(struct prop *p)
{
	off_t end = file_end(p->mfd), at = prop_interesting(p, prop_below(p, end));
	size_t len = 1 + prop_interesting(p, prop_log_size(p, 4 * M));
	int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;

	if (!fallocate(p->mfd, mode, at, len) && fallocate(p->fd, mode, at, len))
		t_die("%s: punch: %s", p->file, strerror(errno));
}

static void make_files(struct prop *p)
{
	size_t at, n, len = p->file_size / 8 * 5 + 1234;
	int fd = t_open(p->file, O_RDWR | O_CREAT | O_TRUNC);

	p->mfd = t_open(p->mirror, O_RDWR | O_CREAT | O_TRUNC);
	for (at = 0; at < len; at += n) {
		n = prop_least(len - at, CHUNK);
		fresh(p, p->a, n);
		mirror_write(p, p->a, n, at);
		if (pwrite(fd, p->a, n, at) != (ssize_t)n)
			t_die("%s: write: %s", p->file, strerror(errno));
	}
	t_file_drop(fd);
	close(fd);
	p->fd = open(p->file, O_RDWR | O_DIRECT | O_CLOEXEC);
	if (p->fd < 0 && errno == EINVAL && !p->must_be_direct)
		p->fd = t_open(p->file, O_RDWR);
	if (p->fd < 0)
		t_die("%s: open with O_DIRECT: %s", p->file, strerror(errno));
	p->look = t_open(p->file, O_RDONLY | (fcntl(p->fd, F_GETFL) & O_DIRECT));
}

static void set_up(struct prop *p)
{
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };
	size_t i;

	p->rnd = p->seed;
	p->size = calloc(p->triples, sizeof(*p->size));
	p->poison = malloc(CHUNK);
	if (!p->size || !p->poison || posix_memalign((void **)&p->a, T_BLOCK, CHUNK + T_BLOCK) ||
	    posix_memalign((void **)&p->b, T_BLOCK, CHUNK + T_BLOCK))
		t_die("out of memory");
	for (i = 0; i < CHUNK / sizeof(uint64_t); i++)
		((uint64_t *)p->poison)[i] = GPU_SIM_POISON;
	prop_plan_sizes(p);
	make_files(p);
	t_gpu_open(&p->gpu, p->card);
	p->mem[0] = t_gpu_alloc(ALLOC);
	p->mem[1] = t_gpu_alloc(ALLOC);
	cufile_ok(cuFileDriverOpen(), "cuFileDriverOpen");
	descr.handle.fd = p->fd;
	cufile_ok(cuFileHandleRegister(&p->fh, &descr), "cuFileHandleRegister");
	reregister(p, true);
}

static void tear_down(struct prop *p)
{
	cufile_ok(cuFileBufDeregister((char *)(uintptr_t)p->mem[1] + p->reg_at),
		  "cuFileBufDeregister");
	cuFileHandleDeregister(p->fh);
	cufile_ok(cuFileDriverClose(), "cuFileDriverClose");
	t_gpu_free(p->mem[0]);
	t_gpu_free(p->mem[1]);
	close(p->fd);
	close(p->look);
	close(p->mfd);
	unlink(p->mirror);
	unlink(p->file);
	free(p->size);
	free(p->a);
	free(p->b);
	free(p->poison);
}

static int run_steps(struct prop *p)
{
	unsigned int i, n = p->triples + p->holes;
	char text[256];
	struct step s;
	size_t size;
	bool look;

	for (i = 0; i < n; i++) {
		bool hole = i >= p->triples;

		if (i && !(i % 25))
			reregister(p, false);
		if (i && !(i % 50) && !hole)
			both_truncate(p, p->file_size / 2 + 1 + prop_below(p, p->file_size / 8));
		if (hole)
			both_punch(p);
		size = hole ? prop_log_size(p, 8 * M) : p->size[i];
		prop_pick(p, &s, size, file_end(p->mfd), hole);
		describe(p, &s, text, sizeof(text));
		look = p->proof && (!(i % p->proof) || (s.size > BIG && !p->seen_big));
		if (run_step(p, &s, look)) {
			fprintf(stderr, "BAD step %u: %s\nrepeat: --seed %" PRIu64 " --triples %u "
				"--holes %u --max-bytes %zu --file-size %zu\n", i, text, p->seed,
				p->triples, p->holes, p->max_bytes, p->file_size);
			return 1;
		}
	}
	return 0;
}

/* All that drives moved over any BAR since the start is what the reports account for. */
static int look_at_all(struct prop *p)
{
	struct t_proof proof;

	if (!p->proof)
		return 0;
	if (t_checkpoint(T_MARK_END, "prop", NULL, 0, &proof))
		return 1;
	if (proof.bar_all >= p->bar && proof.bar_all <= p->bar + p->slack &&
	    proof.bar[p->card] == proof.bar_all)
		return 0;
	fprintf(stderr, "BAD sum: the drives moved %" PRIu64 " bytes over BARs, by the reports %"
		PRIu64 " and at most %" PRIu64 " more\n", proof.bar_all, p->bar, p->slack);
	return 1;
}

static void summary(const struct prop *p)
{
	int i;

	printf("cufile_prop: seed %" PRIu64 ": %" PRIu64 " triples (%" PRIu64 " reads, %" PRIu64
	       " writes), %" PRIu64 " above 64 MiB, %" PRIu64 " bytes, whole blocks %" PRIu64
	       ", direct %" PRIu64 ", edge %" PRIu64 ", witnessed %" PRIu64 ", from outside %"
	       PRIu64, p->seed, p->done[0] + p->done[1], p->done[0], p->done[1], p->big, p->moved,
	       p->whole, p->direct, p->edge, p->witnessed, p->seen);
	for (i = 0; i < OGDS_ROUTES; i++)
		if (p->route[i])
			printf("; %s %" PRIu64, ogds_route_name(i), p->route[i]);
	printf("\n");
}

static int run(struct prop *p)
{
	struct t_proof proof;
	int bad;

	set_up(p);
	if (p->proof && t_checkpoint(T_MARK_BEGIN, "prop", NULL, 0, &proof))
		return 1;
	bad = run_steps(p);
	bad = bad || look_at_all(p);
	if (!bad && check_file(p, 0, file_end(p->mfd))) {
		fprintf(stderr, "BAD whole file at the end, seed %" PRIu64 "\n", p->seed);
		bad = 1;
	}
	summary(p);
	if (!bad)
		tear_down(p);
	return bad;
}

static void __attribute__((noreturn)) usage(void)
{
	fputs("usage: cufile_prop --file F --mirror M [--seed N] [--triples N] [--holes N]\n"
	      "                   [--max-bytes S] [--file-size S] [--card N] [--proof K]\n"
	      "                   [--no-direct]\n", stderr);
	exit(2);
}

int main(int argc, char **argv)
{
	static const struct option opts[] = {
		{ "file", 1, 0, 'f' }, { "mirror", 1, 0, 'm' }, { "seed", 1, 0, 's' },
		{ "triples", 1, 0, 't' }, { "holes", 1, 0, 'h' }, { "max-bytes", 1, 0, 'b' },
		{ "file-size", 1, 0, 'z' }, { "card", 1, 0, 'c' }, { "proof", 1, 0, 'p' },
		{ "no-direct", 0, 0, 'n' }, { 0 },
	};
	struct prop p = {
		.seed = 1, .triples = 500, .holes = 50, .max_bytes = 8192 * M,
		.file_size = 512 * M, .must_be_direct = true,
		.proof = t_checkpoint_available() ? 10 : 0,
	};
	int o;

	while ((o = getopt_long(argc, argv, "", opts, NULL)) != -1) {
		switch (o) {
		case 'f': p.file = optarg; break;
		case 'm': p.mirror = optarg; break;
		case 's': p.seed = strtoull(optarg, NULL, 0); break;
		case 't': p.triples = strtoul(optarg, NULL, 0); break;
		case 'h': p.holes = strtoul(optarg, NULL, 0); break;
		case 'b': p.max_bytes = t_size(optarg); break;
		case 'z': p.file_size = t_size(optarg); break;
		case 'c': p.card = strtol(optarg, NULL, 0); break;
		case 'p': p.proof = strtoul(optarg, NULL, 0); break;
		case 'n': p.must_be_direct = false; break;
		default: usage();
		}
	}
	if (!p.file || !p.mirror || !p.triples || optind < argc)
		usage();
	if (p.file_size < 2 * MAX_SIZE)
		t_die("--file-size: at least %lu, for requests of 256 MiB", 2 * MAX_SIZE);
	setvbuf(stdout, NULL, _IOLBF, 0);
	return run(&p);
}
