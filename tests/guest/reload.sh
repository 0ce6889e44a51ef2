#!/bin/bash
# SPDX-License-Identifier: MIT
# kernels: 6.12 7 debug
# time: 90
# time-long: 900
# Guards unloading and loading nvidia-fs again and again between bursts of load, while card and
# drive stay (10 times; the long form 200), and the order in which it takes itself apart: wait
# for what ends, detach the drivers, proc, PCI, then nodes, class and number. Fails when it
# does not load or unload, when a burst has an error, when a pin or memory stays, when the
# order, as the function tracer saw it, is another one.
. "$(dirname "$0")/lib.sh"

t_hook_there || t_skip "no hooked nvme driver for kernel $OPENGDS_KERNEL"
rounds=10
[ "${OPENGDS_LONG:-}" != 1 ] || rounds=200
! t_short || [ $rounds = 200 ] || rounds=4
trace=/sys/kernel/tracing
want="flush unregister proc_remove bus_unregister_notifier device_destroy class_destroy __unregister_chrdev"

# one function of each step, none of them ours, so that no inlining hides it
trace_on() {
	mountpoint -q $trace || mount -t tracefs tracefs $trace 2>/dev/null || return 1
	grep -qw function $trace/available_tracers || return 1
	printf '%s\n' '*flush_workqueue' 'nvme_v?_unregister_nvfs_dma_ops' proc_remove \
		bus_unregister_notifier device_destroy class_destroy __unregister_chrdev \
		>$trace/set_ftrace_filter || return 1
	echo function >$trace/current_tracer
	echo >$trace/trace
	echo 1 >$trace/tracing_on
}
trace_off() {
	echo nop >$trace/current_tracer
	echo >$trace/set_ftrace_filter
}
# the steps of rmmod in the order in which each came first
trace_order() {
	awk '/rmmod-/ && match($0, /: [a-z_0-9]+ <-/) {
		f = substr($0, RSTART + 2, RLENGTH - 5)
		if (f ~ /flush_workqueue$/) f = "flush"
		if (f ~ /_unregister_nvfs_dma_ops$/) f = "unregister"
		if (!seen[f]++) printf "%s%s", n++ ? " " : "", f
	}' $trace/trace
}

t_load
t_mkfs ext4 0 /mnt
modes=(kill exit munmap free)
for ((i = 0; i < rounds; i++)); do
	[ $i != 1 ] || before=$(t_free_kb)	# the first round fills what is filled once
	mode=${modes[i % 4]} flag=
	[ $((i % 8)) -lt 4 ] || flag=--async
	nvfs_life "$mode" --file /mnt/f --rounds 2 --seed $RANDOM --persistent $flag \
		>"$t_tmp/out" 2>&1 || {
		sed 's/^/    /' "$t_tmp/out"
		t_fail "round $i: nvfs_life $mode $flag"
	}
	t_check_pins
	timeout 30 rmmod nvidia-fs || t_fail "round $i: rmmod nvidia-fs"
	t_insmod nvidia-fs
	t_wait 10 test -c /dev/nvidia-fs0 || t_fail "round $i: no /dev/nvidia-fs0"
	[ $t_failed = 0 ] || break
done
t_say "  loaded and unloaded $i times"
t_check "all $rounds rounds" test $i = $rounds
t_wait 2 t_memory_back "$before" || t_bad "memory stays away"
t_say "  $t_lost KiB of memory lost since the first round ($(t_noise_kb) may be noise)"

t_run "a read, after which it attached" nvfs_life munmap --file /mnt/f --rounds 1 --persistent
if trace_on; then
	timeout 30 rmmod nvidia-fs || t_bad "rmmod nvidia-fs"
	got=$(trace_order)
	trace_off
	t_say "  $got"
	t_check "the order of taking apart" test "$got" = "$want"
	t_insmod nvidia-fs
else
	t_say "  kernel $OPENGDS_KERNEL has no function tracer: the order is not looked at"
fi
t_unload
t_done
