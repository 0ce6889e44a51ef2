/* SPDX-License-Identifier: MIT */
/*
 * log.h - the log of libcufile: one line a message, in the format that people's scripts read.
 *
 *	 DD-MM-YYYY HH:MM:SS:mmm [pid=N tid=N] LEVEL  cufio:123 message
 *
 * The file is made when the first line is written: the path of CUFILE_LOGFILE_PATH, else
 * cufile.log in logging.dir, else in the working directory. It is never opened through a
 * symbolic link as its last component. Cannot it be opened, stderr says so, once a file, and
 * logging is off. Messages carry their level; NOTICE is written at every level but OFF.
 * Any thread; a line is one write(2). errno is preserved.
 */
#ifndef LOG_H
#define LOG_H

#include <stdbool.h>

enum log_level { LOG_OFF, LOG_NOTICE, LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG, LOG_TRACE };

/* max_mb: -1 without limit; at the limit the file is truncated. NULL: the default. */
void log_setup(const char *path, const char *dir, enum log_level level, int max_mb);
/* Nothing is written from here to the next log_setup. */
void log_close(void);

/* true when a line of this level would be written */
bool log_on(enum log_level level);

void log_line(enum log_level level, const char *module, int line, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* LOG_MODULE is defined by each file before it includes this: "cufio-fs", ... */
#define log_at(level, ...)                                                      \
	do {                                                                    \
		if (log_on(level))                                              \
			log_line(level, LOG_MODULE, __LINE__, __VA_ARGS__);     \
	} while (0)

#define log_notice(...) log_at(LOG_NOTICE, __VA_ARGS__)
#define log_error(...) log_at(LOG_ERROR, __VA_ARGS__)
#define log_warn(...) log_at(LOG_WARN, __VA_ARGS__)
#define log_info(...) log_at(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_at(LOG_DEBUG, __VA_ARGS__)
#define log_trace(...) log_at(LOG_TRACE, __VA_ARGS__)

/* "EINVAL" of 22 or -22; "E123" of a number without a name. Static or per-thread text. */
const char *log_errno(int err);

#endif /* LOG_H */
