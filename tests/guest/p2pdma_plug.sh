#!/bin/bash
# SPDX-License-Identifier: MIT
# vm: --topology ports --iommu on
# vm-more: --topology switch
# kernels: 7
# time: 30
# Guards that requests over GPU memory and over host memory to neighbours on a drive, submitted
# in one plug (kernel/hook-test/plug_test.c), never become one command: the block layer takes
# the way to all pages of a command from the first one. Host requests alone are joined there.
# Fails when a byte is another, when a request fails, or when the module counts a mixed command.
. "$(dirname "$0")/lib.sh"

T_STOCK=y t_load
t_insmod plug-test
t_wait 20 t_drive 0 >/dev/null || t_fail "no drive"
for scheduler in none mq-deadline; do
	modprobe -q mq-deadline
	echo $scheduler >"/sys/block/$(basename "$(t_drive 0)")/queue/scheduler" 2>/dev/null ||
		{ t_say "  (no $scheduler here)"; continue; }
	t_run "plug, scheduler $scheduler" nvfs_plug --drive "$(t_drive 0)"
	sed 's/^/    /' "$t_tmp/out"
done
t_check "no command was mixed" grep -q "cpu-gpu-pages=0 " $t_proc/stats
t_check "all of it went over P2PDMA pages" test "$(sed -n 's/^cpu_.*_bytes: //p' \
	$t_proc/opengds | sort -u)" = 0
t_unload
t_done
