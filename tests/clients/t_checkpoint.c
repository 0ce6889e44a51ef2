// SPDX-License-Identifier: MIT
/* t_checkpoint.c - requests to the host's proof daemon, through the shared folder. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gpu_sim.h"
#include "t_checkpoint.h"

#define WAIT_S 120	/* the daemon may have a long trace to read */

static const char *out_dir(void)
{
	const char *dir = getenv("OPENGDS_OUT");

	return dir && *dir ? dir : NULL;
}

bool t_checkpoint_available(void)
{
	char path[PATH_MAX];

	if (!out_dir())
		return false;
	snprintf(path, sizeof(path), "%s/trace.log", out_dir());
	return !access(path, F_OK);
}

static int number(const char *text, const char *key, uint64_t *value)
{
	char want[64];
	const char *at;

	snprintf(want, sizeof(want), "%s=", key);
	at = !strncmp(text, want, strlen(want)) ? text : NULL;
	if (!at) {
		snprintf(want, sizeof(want), "\n%s=", key);
		at = strstr(text, want);
	}
	if (!at)
		return -ENOENT;
	*value = strtoull(at + strlen(want), NULL, 10);
	return 0;
}

int t_proof_parse(const char *text, struct t_proof *proof)
{
	const char *at;
	char key[32];
	int i;

	memset(proof, 0, sizeof(*proof));
	if (number(text, "range_bytes", &proof->range) ||
	    number(text, "ram_bytes", &proof->ram) ||
	    number(text, "unresolved", &proof->unresolved) ||
	    number(text, "bytes", &proof->bytes))
		return -EPROTO;
	for (i = 0; i < T_MAX_CARDS; i++) {
		snprintf(key, sizeof(key), "bar%d_bytes", i);
		if (number(text, key, &proof->bar[i]))
			break;
		proof->bar_all += proof->bar[i];
	}
	if (!i)
		return -EPROTO;
	at = strstr(text, "sha256=");
	if (at)
		snprintf(proof->sha256, sizeof(proof->sha256), "%.*s",
			 (int)strspn(at + 7, "0123456789abcdef"), at + 7);
	at = strstr(text, "poisoned=");
	proof->poisoned = at && !strncmp(at + 9, "yes", 3);
	return 0;
}

static int write_ranges(FILE *f, const struct t_range *range, unsigned int n)
{
	struct gpu_sim_piece *piece;
	uint64_t base = 0;
	unsigned int i, max;
	int k, got;

	for (i = 0; i < n; i++) {
		max = range[i].len / 65536 + 2;
		piece = calloc(max, sizeof(*piece));
		if (!piece)
			return -ENOMEM;
		got = gpu_sim_where((const void *)(uintptr_t)range[i].va, range[i].len, piece,
				    max);
		for (k = 0; k < got; k++)
			fprintf(f, "range %u %llu %llu %llu\n", piece[k].card,
				(unsigned long long)piece[k].card_off,
				(unsigned long long)piece[k].len,
				(unsigned long long)(base + piece[k].buf_off));
		free(piece);
		if (got < 0)
			return got;
		base += range[i].len;
	}
	return 0;
}

static int write_request(const char *path, enum t_mark mark, const char *section,
			 const struct t_range *range, unsigned int n)
{
	char tmp[PATH_MAX + 8];
	FILE *f;
	int err;

	snprintf(tmp, sizeof(tmp), "%s.new", path);
	f = fopen(tmp, "we");
	if (!f)
		return -errno;
	if (mark != T_MARK_NONE)
		fprintf(f, "mark %s %s\n", mark == T_MARK_BEGIN ? "begin" : "end", section);
	fprintf(f, "poison %016llx\n", (unsigned long long)GPU_SIM_POISON);
	err = write_ranges(f, range, n);
	if (fclose(f) && !err)
		err = -EIO;
	if (!err && rename(tmp, path))
		err = -errno;
	return err;
}

static int read_answer(const char *path, char *buf, size_t len)
{
	struct timespec pause = { .tv_nsec = 5000000 };
	struct timespec now, end;
	ssize_t n;
	int fd;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += WAIT_S;
	while ((fd = open(path, O_RDONLY | O_CLOEXEC)) < 0) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (errno != ENOENT)
			return -errno;
		if (now.tv_sec > end.tv_sec)
			return -ETIMEDOUT;
		nanosleep(&pause, NULL);
	}
	n = read(fd, buf, len - 1);
	close(fd);
	if (n < 0)
		return -EIO;
	buf[n] = '\0';
	return 0;
}

int t_checkpoint(enum t_mark mark, const char *section, const struct t_range *range,
		 unsigned int n, struct t_proof *proof)
{
	static unsigned int serial;
	char stem[PATH_MAX - 16], path[PATH_MAX], text[4096];
	int err;

	if (!t_checkpoint_available()) {
		fprintf(stderr, "checkpoint %s: no proof daemon; run under vm/run --trace\n",
			section);
		return -ENOENT;
	}
	snprintf(stem, sizeof(stem), "%s/cp-%d-%u", out_dir(), (int)getpid(),
		 __atomic_add_fetch(&serial, 1, __ATOMIC_RELAXED));
	snprintf(path, sizeof(path), "%s.req", stem);
	err = write_request(path, mark, section, range, n);
	if (!err) {
		snprintf(path, sizeof(path), "%s.ack", stem);
		err = read_answer(path, text, sizeof(text));
	}
	if (!err)
		err = t_proof_parse(text, proof);
	if (err == -EPROTO)
		fprintf(stderr, "checkpoint %s: the daemon answered: %s\n", section, text);
	else if (err)
		fprintf(stderr, "checkpoint %s: %s: %s\n", section, path, strerror(-err));
	unlink(path);
	return err;
}
