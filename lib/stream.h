/* SPDX-License-Identifier: MIT */
/* stream.h - stream operations, for the close. */
#ifndef STREAM_H
#define STREAM_H

/*
 * At close, nobody inside, after workers_release(). Operations whose turn has not come end
 * with DRIVER_CLOSING then.
 */
void streams_release(void);

#endif /* STREAM_H */
