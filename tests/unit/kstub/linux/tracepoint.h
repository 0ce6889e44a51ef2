/* SPDX-License-Identifier: GPL-2.0-only */
/* stand-in for unit tests on the host: tracepoints that do nothing, with their prototypes */
#ifndef KSTUB_TRACEPOINT_H
#define KSTUB_TRACEPOINT_H

#include "../kstub.h"

#define TP_PROTO(...) __VA_ARGS__
#define TP_ARGS(...)
#define TRACE_DEFINE_ENUM(name)
#define TRACE_EVENT(name, proto, ...) \
	static inline void trace_##name(proto) { }

#endif /* KSTUB_TRACEPOINT_H */
