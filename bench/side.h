/* SPDX-License-Identifier: MIT */
/*
 * side.h - contestants side by side: each lives in a process of its own, from before the first
 * measurement to after the last, and takes orders over a socket. So no start-up is measured,
 * two libraries of one name do not meet in one process, and the CPU of each is its own.
 */
#ifndef BENCH_SIDE_H
#define BENCH_SIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SIDE_THREADS 64		/* at most, in one contestant */
#define SIDE_MAX 12		/* contestants */

enum side_kind {
	SIDE_LIBRARY,		/* a libcufile: file and GPU memory */
	SIDE_RAW,		/* pread and pwrite: file and host memory */
	SIDE_COPY,		/* the copy engine: pinned host memory and GPU memory, no file */
	SIDE_STORE,		/* pread straight into GPU memory, seen through BAR1: reads alone */
};

enum side_what {
	SIDE_CELL,		/* requests of one size for some time, a range for each thread */
	SIDE_LOAD,		/* all tensors of a file, once */
};

/* Before the measurement: poison what is read into; fill what is written from, with `seed`. */
#define SIDE_PREPARE 1
/* After it (needs PREPARE): each byte that was moved is what it must be, no other was touched. */
#define SIDE_VERIFY 2
#define SIDE_REGISTERED 4
#define SIDE_DIRECT 8		/* O_DIRECT */
#define SIDE_WRITE 16
/* Thread n runs on the n-th processor, in all contestants the same one. What a library starts then
 * runs there, too: for requests that one thread does alone. */
#define SIDE_PIN 32

struct side_order {
	uint32_t what, flags, threads, reserved;
	uint64_t size;		/* of a request: multiple of 4096 */
	uint64_t range;		/* of a thread in the file, and its buffer: multiple of size */
	uint64_t seed;
	double seconds;
};

struct side_result {
	double seconds;		/* from the first request to the end of the last */
	double whole;		/* SIDE_LOAD: with open, registrations and their ends */
	double cpu;		/* seconds, user and system, of all threads of the process */
	uint64_t bytes, requests, verified;
	int32_t failed;		/* the contestant ends after it; text says why */
	int32_t version, cuda;	/* hello: of the library, of the GPU's driver */
	int32_t reserved;
	char text[480];		/* hello: the GPU's name */
};

/* A contestant, as the bench sees it. */
struct side {
	enum side_kind kind;
	char name[24];
	char *path;		/* of the library; NULL */
	char **env;		/* VARIABLE=VALUE of its process, ends in NULL; NULL */
	const char *file;
	int gpu;

	pid_t pid;		/* 0: it does not run */
	int fd;
	unsigned int restarts;
	struct side_result hello;
};

/* NAME=PATH[,VARIABLE=VALUE]... : 0, or -1 and why. */
int side_parse(struct side *s, const char *text, char *why, size_t len);
/* Starts its process and waits until it is ready: 0, or -1 and hello.text says why. */
int side_start(struct side *s);
/* 0, or -1 with r->text; then its process has ended, and the next order starts another. */
int side_ask(struct side *s, const struct side_order *o, struct side_result *r);
void side_stop(struct side *s);

/* In main(): a process that was started by side_start() does its work here and never returns. */
void side_here(int argc, char **argv);

double side_now(void);		/* seconds, monotonic */
/* "64K", "8M", "1G" or plain bytes; 0: it is no size */
uint64_t side_size(const char *text);
/* Back into such a text, for people. */
const char *side_size_text(uint64_t size, char buf[16]);

#endif /* BENCH_SIDE_H */
