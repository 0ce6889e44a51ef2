// SPDX-License-Identifier: MIT
/* side.c - the bench's end of a contestant: its process, its orders, its results. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "side.h"

#define PATIENCE_MS 180000	/* for one answer; then it hangs */
#define MAX_RESTARTS 8

double side_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

uint64_t side_size(const char *text)
{
	unsigned long long v;
	unsigned int shift = 0;
	char *end;

	v = strtoull(text, &end, 10);
	switch (*end) {
	case 'K': shift = 10; break;
	case 'M': shift = 20; break;
	case 'G': shift = 30; break;
	}
	if (end == text || end[shift ? 1 : 0] || v > UINT64_MAX >> (shift + 1))
		return 0;
	return v << shift;
}

const char *side_size_text(uint64_t size, char buf[16])
{
	static const char unit[] = " KMG";
	unsigned int i = 0;

	while (i < 3 && size && size % 1024 == 0) {
		size /= 1024;
		i++;
	}
	snprintf(buf, 16, i ? "%llu%c" : "%llu", (unsigned long long)size, unit[i]);
	return buf;
}

int side_parse(struct side *s, const char *text, char *why, size_t len)
{
	const char *eq = strchr(text, '=');
	char *copy, *at, *path;
	unsigned int n = 0;

	if (!eq || eq == text || (size_t)(eq - text) >= sizeof(s->name)) {
		snprintf(why, len, "\"%s\": NAME=PATH is wanted, a NAME of up to %zu characters", text,
			 sizeof(s->name) - 1);
		return -1;
	}
	snprintf(s->name, sizeof(s->name), "%.*s", (int)(eq - text), text);
	s->kind = SIDE_LIBRARY;
	copy = strdup(eq + 1);
	s->env = calloc(strlen(text) + 1, sizeof(*s->env));
	if (!copy || !s->env) {
		snprintf(why, len, "out of memory");
		return -1;
	}
	path = strtok_r(copy, ",", &at);
	s->path = path ? realpath(path, NULL) : NULL;
	if (!s->path) {
		snprintf(why, len, "library %s: %s: %s", s->name, path ? path : "no path",
			 strerror(path ? errno : EINVAL));
		return -1;
	}
	while ((path = strtok_r(NULL, ",", &at))) {
		if (!strchr(path, '=') || *path == '=') {
			snprintf(why, len, "library %s: \"%s\" is no VARIABLE=VALUE", s->name, path);
			return -1;
		}
		s->env[n++] = path;
	}
	return 0;
}

static void run_child(const struct side *s, int fd)
{
	char kind[16], gpu[16], socket[16];
	unsigned int i;

	/* it also ends when its socket does; a library that hangs does not see that */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* who stops the bench stops a group: it ends its contestants itself */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	fcntl(fd, F_SETFD, 0);
	dup2(STDERR_FILENO, STDOUT_FILENO);
	for (i = 0; s->env && s->env[i]; i++)
		putenv(s->env[i]);
	snprintf(kind, sizeof(kind), "%d", s->kind);
	snprintf(gpu, sizeof(gpu), "%d", s->gpu);
	snprintf(socket, sizeof(socket), "%d", fd);
	execl("/proc/self/exe", s->name, "--side", kind, s->path ? s->path : "-", s->file, gpu,
	      socket, NULL);
	_exit(127);
}

/* Its process is gone, or has to go; why goes into the text when it said nothing itself. */
static int lost(struct side *s, struct side_result *r, const char *what)
{
	int status = 0;

	kill(s->pid, SIGKILL);
	waitpid(s->pid, &status, 0);
	close(s->fd);
	s->pid = 0;
	r->failed = 1;
	if (what)
		snprintf(r->text, sizeof(r->text), "%s", what);
	return -1;
}

static int answer(struct side *s, struct side_result *r)
{
	struct pollfd p = { .fd = s->fd, .events = POLLIN };
	ssize_t n;
	int got;

	memset(r, 0, sizeof(*r));
	do {
		got = poll(&p, 1, PATIENCE_MS);
	} while (got < 0 && errno == EINTR);
	if (got <= 0)
		return lost(s, r, "no answer for three minutes: it hangs, and was killed");
	n = recv(s->fd, r, sizeof(*r), MSG_WAITALL);
	if (n != sizeof(*r))
		return lost(s, r, "its process died");
	r->text[sizeof(r->text) - 1] = '\0';
	return r->failed ? lost(s, r, NULL) : 0;
}

int side_start(struct side *s)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) {
		snprintf(s->hello.text, sizeof(s->hello.text), "socketpair: %s", strerror(errno));
		return -1;
	}
	fflush(NULL);
	s->pid = fork();
	if (!s->pid) {
		close(pair[0]);
		run_child(s, pair[1]);
	}
	close(pair[1]);
	s->fd = pair[0];
	if (s->pid < 0) {
		close(s->fd);
		s->pid = 0;
		snprintf(s->hello.text, sizeof(s->hello.text), "fork: %s", strerror(errno));
		return -1;
	}
	return answer(s, &s->hello);
}

int side_ask(struct side *s, const struct side_order *o, struct side_result *r)
{
	memset(r, 0, sizeof(*r));
	r->failed = 1;
	if (!s->pid) {
		if (s->restarts++ >= MAX_RESTARTS) {
			snprintf(r->text, sizeof(r->text), "it failed too often: not started again");
			return -1;
		}
		if (side_start(s)) {
			*r = s->hello;
			return -1;
		}
	}
	if (send(s->fd, o, sizeof(*o), MSG_NOSIGNAL) != sizeof(*o))
		return lost(s, r, "its process died");
	return answer(s, r);
}

void side_stop(struct side *s)
{
	int status, i;

	if (!s->pid)
		return;
	/* it closes its library when the socket ends; a close that hangs is not waited for */
	shutdown(s->fd, SHUT_WR);
	for (i = 0; i < 500 && !waitpid(s->pid, &status, WNOHANG); i++)
		usleep(20000);
	if (i == 500) {
		kill(s->pid, SIGKILL);
		waitpid(s->pid, &status, 0);
	}
	close(s->fd);
	s->pid = 0;
}
