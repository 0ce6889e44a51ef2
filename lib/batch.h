/* SPDX-License-Identifier: MIT */
/* batch.h - batches, for the close. */
#ifndef BATCH_H
#define BATCH_H

/* At close, nobody inside, after workers_release(): no entry is queued or running. */
void batches_release(void);

#endif /* BATCH_H */
