/* SPDX-License-Identifier: MIT */
/*
 * probes.h - static probe points (USDT) of provider cufio: a nop each, that perf, bpftrace,
 * SystemTap or gdb can stop at. Names are the published ones; what each carries stands in
 * docs/library.md, "Probes". Without sys/sdt.h there are none.
 */
#ifndef PROBES_H
#define PROBES_H

#ifdef HAVE_SDT
#include <sys/sdt.h>
#define PROBE3(name, ...) STAP_PROBE3(cufio, name, __VA_ARGS__)
#define PROBE4(name, ...) STAP_PROBE4(cufio, name, __VA_ARGS__)
#define PROBE5(name, ...) STAP_PROBE5(cufio, name, __VA_ARGS__)
#define PROBE6(name, ...) STAP_PROBE6(cufio, name, __VA_ARGS__)
#else
#define PROBE3(name, a, b, c) ((void)(a), (void)(b), (void)(c))
#define PROBE4(name, a, b, c, d) ((void)(a), (void)(b), (void)(c), (void)(d))
#define PROBE5(name, a, b, c, d, e) ((void)(a), (void)(b), (void)(c), (void)(d), (void)(e))
#define PROBE6(name, a, b, c, d, e, f) \
	((void)(a), (void)(b), (void)(c), (void)(d), (void)(e), (void)(f))
#endif

#endif /* PROBES_H */
