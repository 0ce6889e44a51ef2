#!/bin/bash
# SPDX-License-Identifier: MIT
# kernels: 6.12 debug
# vm: --nvme 1 --gpus 1 --mem 2G --vram 1G
# time: 40
# time-long: 660
# Guards that pinned pages of GPU memory that was freed are never written to in place of the
# memory that is at their address now, which only a card with pages of its own can show: threads
# free registered memory, take the same address again, and look at every byte of each read.
# 5 s, with OPENGDS_LONG=1 in the guest ten minutes. Fails on a wrong byte, a refused
# registration, on 90 % of the card's memory that is not there again after a read and a free, and
# when a pin or a DMA mapping stays.
. "$(dirname "$0")/lib.sh"

t_hook_there || t_skip "no hooked nvme driver for kernel $OPENGDS_KERNEL"
export CUFILE_LOGFILE_PATH=$t_tmp/cufile.log
seconds=5 status=0
[ -z "${OPENGDS_LONG:-}" ] || seconds=600
t_load
t_mkfs ext4 0 /mnt
cufile_reuse --dir /mnt --threads 4 --seconds $seconds --seed "${T_SEED:-$RANDOM}" \
	>"$t_tmp/out" 2>&1 || status=$?
sed 's/^/  /' "$t_tmp/out"
t_check "cufile_reuse, $seconds s: status $status" [ "$status" = 0 ]
[ "$status" = 0 ] || tail -n 20 "$CUFILE_LOGFILE_PATH" | sed 's/^/  log:/'
t_check_pins
t_unload
t_done
