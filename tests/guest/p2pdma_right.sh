#!/bin/bash
# SPDX-License-Identifier: MIT
# kernels: 7
# time: 90
# Guards neverwrong.sh's rules with P2PDMA carriers and the kernel's own nvme driver: every byte
# is right on ext4 and XFS whatever the file system does (holes, unwritten extents, inline and
# journalled data, the file's end), and what the CPU moved is told as that: the count of it is
# exact. Nothing is written twice, since a CPU that touches such a carrier touches GPU memory.
# Fails when a byte is another, when a hole passes for what a drive moved, or the other way round.
export T_STOCK=y T_NVFS=carriers=p2pdma
t_rewrites=0
. "$(dirname "$0")/neverwrong.sh"
