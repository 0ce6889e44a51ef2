#!/bin/bash
# SPDX-License-Identifier: MIT
# time: 40
# Guards that no sequence of calls hurts: structured random calls, valid ones mixed in, in
# several threads, workers killed in the middle. Fails on a bug of nvfs_fuzz (see there),
# on a bad line in the log, and when pins, DMA mappings, carriers or memory stay. On the debug
# kernel also when a check of READ and WRITE (tests/fuzz/checks) was not reached, by KCOV.
# T_COUNT, T_SEED: tests/fuzz/run sets them for each of its boots.
. "$(dirname "$0")/lib.sh"

t_hook_there || t_skip "no hooked nvme driver for kernel $OPENGDS_KERNEL"
count=${T_COUNT:-20000}
seed=${T_SEED:-20261129}
! t_debug || [ -n "${T_COUNT:-}" ] || count=6000

t_load
t_mkfs ext4 0 /mnt
# a first round fills what is filled once: slabs, per-CPU lists, page tables
t_run "warm up" nvfs_fuzz --dir /mnt --count 1000 --seed 1
t_check_pins
before=$(t_free_kb)
kcov=()
if t_debug; then
	t_debugfs
	t_check "the kernel has KCOV" test -w /sys/kernel/debug/kcov
	kcov=(--kcov "$OPENGDS_OUT/kcov")
fi
nvfs_fuzz --dir /mnt --count "$count" --seed "$seed" "${kcov[@]}" >"$t_tmp/out" 2>&1 ||
	t_bad "nvfs_fuzz"
sed 's/^/  /' "$t_tmp/out"
if [ ${#kcov[@]} != 0 ]; then
	"$t_top/tests/fuzz/coverage" --module "$OPENGDS_BUILD/src/kernel/nvidia-fs/nvidia-fs.ko" \
		"$OPENGDS_OUT/kcov" >"$t_tmp/coverage" 2>&1 ||
		t_bad "a check of READ and WRITE was not reached"
	sed 's/^/  /' "$t_tmp/coverage"
fi
t_check_pins
t_check "no shadow buffer stays" test "$(sed -n 's/^Active Shadow-Buffer (MiB): //p' $t_proc/stats)" = 0
t_check "all VRAM is free" test "$(t_sim free_pages)" = "$(t_sim total_pages)"
# a mapping leaked has 64 KiB at least, and there were thousands; what killed processes and
# the block layer still hold comes back by itself, a leak does not
t_wait 2 t_memory_back "$before" || t_bad "memory stays away"
t_say "  $t_lost KiB of $before lost ($(t_noise_kb) may be noise)"
t_unload
t_done
