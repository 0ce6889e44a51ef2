#!/bin/bash
# SPDX-License-Identifier: MIT
# kernels: 6.12 debug
# vm: --nvme 2 --gpus 2 --mem 2G --vram 512M
# time: 60
# time-long: 240
# Guards the library under load and at its ends: 64 threads on four files of two drives and
# on two cards, registered, unregistered and host memory, odd sizes and offsets, while
# handles and buffers come and go; then the same with a close, a deregistration, a free of
# GPU memory and a SIGKILL in the middle. 5 s, with OPENGDS_LONG=1 in the guest 60 s.
# Fails on a crash, a hang, a byte that is neither old nor new, an error that is none of
# those a close or a deregistration may give, and when a pin or a DMA mapping stays or a
# module does not unload afterwards. T_SEED repeats a run.
. "$(dirname "$0")/lib.sh"

t_hook_there || t_skip "no hooked nvme driver for kernel $OPENGDS_KERNEL"
export CUFILE_LOGFILE_PATH=$t_tmp/cufile.log
seed=${T_SEED:-$RANDOM}
seconds=5 ends=2
! t_short || seconds=4 ends=1
[ -z "${OPENGDS_LONG:-}" ] || seconds=60 ends=15

# stress SECONDS STOP
stress() {
	local status=0
	timeout $(($1 * 4 + 120)) cufile_stress --dir /mnt/a --dir /mnt/b --cards 2 \
		--seconds "$1" --stop "$2" --seed "$seed" >"$t_tmp/out" 2>&1 || status=$?
	sed 's/^/  /' "$t_tmp/out"
	t_check "stop $2, $1 s, seed $seed: status $status" [ "$status" = 0 ]
	[ "$status" = 0 ] || tail -n 20 "$CUFILE_LOGFILE_PATH" | sed 's/^/  log:/'
	t_check_pins
}

t_load
t_mkfs ext4 0 /mnt/a
t_mkfs xfs 1 /mnt/b
stress $seconds none
for stop in close deregister free kill; do stress $ends $stop; done
t_unload
t_done
