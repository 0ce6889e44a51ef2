// SPDX-License-Identifier: MIT
/*
 * stats_text.c - the table of counters as scripts parse it. Needs nothing of the library, so
 * that tools can be built with it.
 */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include "stats_text.h"

struct out {
	void (*line)(void *arg, const char *text);
	void *arg;
};

static void __attribute__((format(printf, 2, 3))) say(const struct out *o, const char *fmt, ...)
{
	char text[128];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	o->line(o->arg, text);
}

static void say_counter(const struct out *o, const char *name, const CUfileOpCounter_t *c)
{
	say(o, "%s: ok = %llu err = %llu", name, (unsigned long long)c->ok,
	    (unsigned long long)c->err);
}

static void say_mib(const struct out *o, const char *name, uint64_t bytes)
{
	say(o, "%s (MiB): %llu", name, (unsigned long long)bytes >> 20);
}

static void say_rate(const struct out *o, const char *name, uint64_t bytes)
{
	say(o, "%s (GiB/s): %g", name, (double)bytes / (1 << 30));
}

static void say_us(const struct out *o, const char *name, uint64_t us)
{
	say(o, "%s (us): %llu", name, (unsigned long long)us);
}

void stats_text_global(const CUfileStatsLevel1_t *l, void (*line)(void *arg, const char *text),
		       void *arg)
{
	const struct out o = { line, arg };

	say(&o, "GLOBAL STATS:");
	say_counter(&o, "Read", &l->read_ops);
	say_counter(&o, "Write", &l->write_ops);
	say_counter(&o, "HandleRegister", &l->hdl_register_ops);
	say_counter(&o, "HandleDeregister", &l->hdl_deregister_ops);
	say_counter(&o, "BufRegister", &l->buf_register_ops);
	say_counter(&o, "BufDeregister", &l->buf_deregister_ops);
	say_counter(&o, "BatchSubmit", &l->batch_submit_ops);
	say_counter(&o, "BatchComplete", &l->batch_complete_ops);
	say_counter(&o, "BatchSetup", &l->batch_setup_ops);
	say_counter(&o, "BatchCancel", &l->batch_cancel_ops);
	say_counter(&o, "BatchDestroy", &l->batch_destroy_ops);
	say_counter(&o, "BatchEnqueued", &l->batch_enqueued_ops);
	say_counter(&o, "PosixBatchEnqueued", &l->batch_posix_enqueued_ops);
	say_counter(&o, "BatchProcessed", &l->batch_processed_ops);
	say_counter(&o, "PosixBatchProcessed", &l->batch_posix_processed_ops);
	say_mib(&o, "Total Read Size", l->read_bytes);
	say_rate(&o, "Read BandWidth", l->read_bw_bytes_per_sec);
	say_us(&o, "Avg Read Latency", l->read_lat_avg_us);
	say_mib(&o, "Total Write Size", l->write_bytes);
	say_rate(&o, "Write BandWidth", l->write_bw_bytes_per_sec);
	say_us(&o, "Avg Write Latency", l->write_lat_avg_us);
	say_mib(&o, "Total Batch Read Size", l->batch_read_bytes);
	say_mib(&o, "Total Batch Write Size", l->batch_write_bytes);
	say_rate(&o, "Batch Read BandWidth", l->batch_read_bw_bytes);
	say_rate(&o, "Batch Write BandWidth", l->batch_write_bw_bytes);
	say_us(&o, "Avg Batch Submit Latency", l->batch_submit_lat_avg_us);
	say_us(&o, "Avg Batch Completion Latency", l->batch_completion_lat_avg_us);
}
