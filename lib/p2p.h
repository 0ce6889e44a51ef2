/* SPDX-License-Identifier: MIT */
/* p2p.h - what programs ask of the ways between drives and GPUs. */
#ifndef P2P_H
#define P2P_H

/* At close, by who holds the lock of open and close. */
void p2p_forget(void);

#endif /* P2P_H */
