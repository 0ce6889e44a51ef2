// SPDX-License-Identifier: MIT
/*
 * The checkpoint server: answers what a guest asks while it runs.
 *
 * A guest program writes NAME.req into the results folder and waits for NAME.ack. Since
 * QEMU writes a trace line before it goes on, everything that was complete in the guest
 * when it asked is in the trace when the request is seen here. Every answer is also
 * appended to sections.log, one line each, for `proof report`.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proof.h"

/* a gigabyte of scattered 64-KiB pages has 16384 ranges, about 600 KiB of text */
#define REQUEST_MAX	(16u << 20)

struct section {
	struct section *next;
	char name[64];
	struct proof_count at;
	uint64_t offset;	/* of the trace, when it began */
	bool open;
};

struct server {
	const char *dir;
	int trace_fd;
	struct proof_trace *trace;
	struct proof_pci pci;
	struct section *sections;	/* the latest first */
};

struct answer {
	char *text;
	size_t len;
	FILE *f;
};

static void complain(const char *what, const char *name, int err)
{
	fprintf(stderr, "proof: %s %s: %s\n", what, name, strerror(-err));
}

/* The whole of a small file, with a NUL behind. NULL with errno. */
static char *slurp(const char *path)
{
	struct stat st;
	char *buf = NULL;
	ssize_t n, have = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return NULL;
	if (fstat(fd, &st))
		goto fail;
	if (!S_ISREG(st.st_mode) || st.st_size > REQUEST_MAX) {
		errno = EFBIG;
		goto fail;
	}
	buf = malloc((size_t)st.st_size + 1);
	if (!buf)
		goto fail;
	while (have < st.st_size && (n = read(fd, buf + have, (size_t)(st.st_size - have))) > 0)
		have += n;
	buf[have] = 0;
	close(fd);
	return buf;
fail:
	n = errno;
	free(buf);
	close(fd);
	errno = (int)n;
	return NULL;
}

static struct section *find_section(struct server *s, const char *name)
{
	struct section *sec;

	for (sec = s->sections; sec; sec = sec->next) {
		/* without a name the latest that is open */
		if (name[0] ? !strcmp(sec->name, name) : sec->open)
			return sec;
	}
	return NULL;
}

static int begin_section(struct server *s, const char *name)
{
	struct section *sec = calloc(1, sizeof(*sec));

	if (!sec)
		return -ENOMEM;
	strcpy(sec->name, name);
	sec->at = *proof_trace_count(s->trace);
	sec->offset = proof_trace_offset(s->trace);
	sec->open = true;
	sec->next = s->sections;
	s->sections = sec;
	return 0;
}

/* Bring the counters up to the end of the trace */
static int catch_up(struct server *s, char *why, size_t why_len)
{
	char path[4096];
	int ret;

	snprintf(path, sizeof(path), "%s/pci.txt", s->dir);
	ret = proof_pci_read(path, &s->pci);
	if (ret) {
		snprintf(why, why_len, "cannot read pci.txt: %s", strerror(-ret));
		return ret;
	}
	proof_trace_pci(s->trace, &s->pci);
	ret = proof_trace_file(s->trace, s->trace_fd);
	if (ret)
		snprintf(why, why_len, "cannot read trace.log: %s", strerror(-ret));
	return ret;
}

/* Answer the request's text on out; on an error nothing is written there, why says it */
static int evaluate(struct server *s, char *text, FILE *out, char *why, size_t why_len)
{
	static const struct proof_count none;
	const struct proof_count *from = &none, *now;
	const struct proof_extent *ext;
	struct proof_content content;
	struct proof_request req;
	struct section *sec;
	uint64_t hit;
	unsigned int i;
	size_t n;
	int ret;

	ret = catch_up(s, why, why_len);
	if (ret)
		return ret;
	ret = proof_request_parse(text, &s->pci, &req, why, why_len);
	if (ret)
		goto out;
	if (req.mark == PROOF_BEGIN) {
		ret = begin_section(s, req.section);
		if (ret)
			goto out;
	}
	sec = find_section(s, req.section);
	if (req.mark == PROOF_END) {
		if (!sec || !sec->open) {
			snprintf(why, why_len, "section '%s' was not begun", req.section);
			ret = -ENOENT;
			goto out;
		}
		sec->open = false;
	}
	if (sec)
		from = &sec->at;
	now = proof_trace_count(s->trace);
	ext = proof_trace_extents(s->trace, &n);
	ret = proof_ranges_hit(&req, ext ? ext + from->extents : NULL, n - from->extents, &hit);
	if (!ret)
		ret = proof_ranges_content(s->dir, &req, &content);
	if (ret) {
		snprintf(why, why_len, "cannot look at the ranges: %s", strerror(-ret));
		goto out;
	}
	fprintf(out, "section=%s\n", sec ? sec->name : "");
	for (i = 0; i < s->pci.cards; i++)
		fprintf(out, "bar%u_bytes=%" PRIu64 "\n", i, now->bar[i] - from->bar[i]);
	fprintf(out, "range_bytes=%" PRIu64 "\n", hit);
	fprintf(out, "ram_bytes=%" PRIu64 "\n", now->ram - from->ram);
	fprintf(out, "unresolved=%" PRIu64 "\n", now->unresolved - from->unresolved);
	fprintf(out, "failed_bytes=%" PRIu64 "\n", now->failed - from->failed);
	fprintf(out, "commands=%" PRIu64 "\n", now->commands - from->commands);
	fprintf(out, "bytes=%" PRIu64 "\n", content.bytes);
	if (req.ranges)
		fprintf(out, "sha256=%s\n", content.sha256);
	if (req.ranges && req.has_poison)
		fprintf(out, "poisoned=%s\n", content.poisoned ? "yes" : "no");
	fprintf(out, "trace=%" PRIu64 "-%" PRIu64 "\n", sec ? sec->offset : 0,
		proof_trace_offset(s->trace));
out:
	proof_request_free(&req);
	return ret;
}

/* One line of sections.log: the answer with spaces for newlines */
static void record(struct server *s, const char *name, const char *text)
{
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/sections.log", s->dir);
	f = fopen(path, "ae");
	if (!f) {
		complain("cannot append to", path, -errno);
		return;
	}
	fprintf(f, "checkpoint=%s ", name);
	for (; *text; text++) {
		if (*text != '\n')
			fputc(*text, f);
		else if (text[1])
			fputc(' ', f);
	}
	fputc('\n', f);
	fclose(f);
}

/* Write NAME.ack so that it is there whole or not at all */
static int acknowledge(struct server *s, const char *name, const char *text)
{
	char tmp[4096], ack[4096];
	FILE *f;

	snprintf(tmp, sizeof(tmp), "%s/%s.tmp", s->dir, name);
	snprintf(ack, sizeof(ack), "%s/%s.ack", s->dir, name);
	f = fopen(tmp, "we");
	if (!f)
		return -errno;
	if (fputs(text, f) < 0) {
		fclose(f);
		return -EIO;
	}
	if (fclose(f) || rename(tmp, ack))
		return -errno;
	return 0;
}

static void serve(struct server *s, const char *file)
{
	char path[4096], name[256], why[512] = "";
	struct answer a = { 0 };
	size_t len = strlen(file);
	char *text;
	int ret;

	if (len <= 4 || len >= sizeof(name) || strcmp(file + len - 4, ".req"))
		return;
	memcpy(name, file, len - 4);
	name[len - 4] = 0;
	snprintf(path, sizeof(path), "%s/%s", s->dir, file);
	text = slurp(path);
	if (!text) {
		if (errno != ENOENT)
			complain("cannot read", path, -errno);
		return;
	}
	/* closed before anything was written: it will be closed again */
	if (!text[0]) {
		free(text);
		return;
	}
	a.f = open_memstream(&a.text, &a.len);
	if (!a.f) {
		complain("no memory for the answer to", path, -errno);
		free(text);
		return;
	}
	ret = evaluate(s, text, a.f, why, sizeof(why));
	free(text);
	if (ret)
		fprintf(a.f, "error=%s\n", why[0] ? why : strerror(-ret));
	if (fclose(a.f)) {
		complain("no memory for the answer to", path, -errno);
		return;
	}
	record(s, name, a.text);
	unlink(path);
	ret = acknowledge(s, name, a.text);
	if (ret)
		complain("cannot answer", path, ret);
	free(a.text);
}

/* Requests that were there before the watch */
static void serve_all(struct server *s)
{
	struct dirent *de;
	DIR *d = opendir(s->dir);

	if (!d)
		return;
	while ((de = readdir(d)))
		serve(s, de->d_name);
	closedir(d);
}

static void serve_events(struct server *s, int fd)
{
	_Alignas(struct inotify_event) char buf[16384];
	const struct inotify_event *ev;
	ssize_t n = read(fd, buf, sizeof(buf));
	char *p;

	for (p = buf; n > 0 && p < buf + n; p += sizeof(*ev) + ev->len) {
		ev = (const struct inotify_event *)p;
		if (ev->mask & IN_Q_OVERFLOW)
			serve_all(s);
		else if (ev->len)
			serve(s, ev->name);
	}
}

/* Serve until SIGTERM or SIGINT. 0, -errno */
int proof_watch(const char *dir)
{
	struct server s = { .dir = dir, .trace_fd = -1 };
	struct pollfd fds[2];
	struct section *sec;
	char path[4096];
	sigset_t stop;
	int ret = 0, watch = -1, sig = -1;

	sigemptyset(&stop);
	sigaddset(&stop, SIGTERM);
	sigaddset(&stop, SIGINT);
	sigprocmask(SIG_BLOCK, &stop, NULL);
	snprintf(path, sizeof(path), "%s/trace.log", dir);
	s.trace_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (s.trace_fd < 0) {
		ret = -errno;
		complain("cannot open", path, ret);
		return ret;
	}
	s.trace = proof_trace_new(&s.pci);
	sig = signalfd(-1, &stop, SFD_CLOEXEC);
	watch = inotify_init1(IN_CLOEXEC);
	if (!s.trace || sig < 0 || watch < 0 ||
	    inotify_add_watch(watch, dir, IN_CLOSE_WRITE | IN_MOVED_TO) < 0) {
		ret = -errno;
		complain("cannot watch", dir, ret);
		goto out;
	}
	serve_all(&s);
	fds[0] = (struct pollfd){ .fd = sig, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = watch, .events = POLLIN };
	for (;;) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR) {
			ret = -errno;
			complain("cannot wait for", dir, ret);
			break;
		}
		if (fds[1].revents)
			serve_events(&s, watch);
		if (fds[0].revents)
			break;
	}
out:
	while ((sec = s.sections)) {
		s.sections = sec->next;
		free(sec);
	}
	proof_trace_free(s.trace);
	if (watch >= 0)
		close(watch);
	if (sig >= 0)
		close(sig);
	close(s.trace_fd);
	return ret;
}
