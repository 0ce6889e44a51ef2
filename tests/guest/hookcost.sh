#!/bin/bash
# SPDX-License-Identifier: MIT
# kernels: 6.1 6.12 7
# core: none
# time: 40
# Guards what the hook costs requests of host memory, counted with the function tracer. While
# no provider is registered nothing of the hook runs. While nvidia-fs is, and a process holds a
# mapping, each bio is shown to it once, by its first page, and that is all: no other function
# of the module or of the hook, on the way out or back; no lock, no allocation, no look-up by
# one of them. Fails when a function runs more often than there are bios, or another one runs.
. "$(dirname "$0")/lib.sh"

t_hook_there || t_skip "no hooked nvme driver for kernel $OPENGDS_KERNEL"
trace=/sys/kernel/tracing
t_tracefs
grep -qw function $trace/available_tracers || t_skip "kernel $OPENGDS_KERNEL has no function tracer"
# what one of ours could call that costs; by whom they were called stands in the trace. The
# tracer does not see the kernel's lib/: a look-up is told by nvfs_carrier_search(), ours.
costly=('_raw_*lock*' 'mutex_lock*' 'kmem_cache_alloc*' '__kmalloc*' 'down_*' 'kfree')

ended() {
	local status=$?
	if [ -w $trace/tracing_on ]; then
		echo 0 >$trace/tracing_on
		echo nop >$trace/current_tracer
		echo >$trace/set_ftrace_filter
		echo 1408 >$trace/buffer_size_kb
	fi
	(exit "$status")
	t_cleanup
}
trap ended EXIT

# t_filter FILTER...: what is traced
t_filter() {
	echo nop >$trace/current_tracer
	printf '%s\n' "$@" >$trace/set_ftrace_filter || t_fail "set_ftrace_filter: $*"
	echo function >$trace/current_tracer || t_fail "no function tracer"
}

# requests, and bios (those that began one and those merged into one) that the drive has served
t_requests() { awk '{ print $1 + $5 }' "/sys/block/${dev##*/}/stat"; }
t_bios() { awk '{ print $1 + $2 + $5 + $6 }' "/sys/block/${dev##*/}/stat"; }

# host memory: large and small requests, both ways, and through the page cache
t_host() {
	dd if="$dev" of=/dev/null bs=1M count=16 iflag=direct status=none || t_bad "dd"
	dd if="$dev" of=/dev/null bs=4k count=64 iflag=direct status=none || t_bad "dd"
	dd if=/dev/zero of="$dev" bs=512k count=8 seek=128 oflag=direct conv=notrunc,nocreat \
		status=none || t_bad "dd"
	dd if="$dev" of=/dev/null bs=1M count=4 skip=128 status=none || t_bad "dd"
}

# t_traced COMMAND...: what of ours ran meanwhile, and what it called, in $t_tmp/trace:
# FUNCTION CALLER; sets requests and bios
t_traced() {
	local lost
	requests=$(t_requests) bios=$(t_bios)
	echo >$trace/trace
	echo 1 >$trace/tracing_on
	"$@"
	echo 0 >$trace/tracing_on
	requests=$(($(t_requests) - requests)) bios=$(($(t_bios) - bios))
	cat $trace/trace >"$t_tmp/raw"
	sed -nE 's/^.*: ([A-Za-z_0-9.]+) <-([A-Za-z_0-9.]+)$/\1 \2/p' "$t_tmp/raw" |
		grep -E '(^| )nvfs_' >"$t_tmp/trace"
	lost=$(cat $trace/per_cpu/cpu*/stats | awk '/^(overrun|dropped events):/ { n += $NF } END { print n + 0 }')
	t_check "the tracer lost nothing of $(wc -l <"$t_tmp/raw") lines" test "$lost" = 0
}
t_calls() { grep -c "^$1 " "$t_tmp/trace"; }
# t_others FUNCTIONS: what else than these
t_others() {
	local but=$1
	awk -v but=" $but " '!index(but, " " $1 " ") { n[$1 " (by " $2 ")"]++ }
		END { for (i in n) print "    " n[i] " times " i }' "$t_tmp/trace"
}
t_nothing_else() {
	local others
	others=$(t_others "$2")
	[ -z "$others" ] || t_say "$others"
	t_check "$1" test -z "$others"
}

t_insmod gpu-sim
modprobe -q nvme-core || t_fail "modprobe nvme-core"
t_insmod nvme
t_wait 20 t_drive 0 >/dev/null || t_fail "no drive"
dev=$(t_drive 0)
t_filter 'nvfs_*:mod:nvme'
t_traced t_host
t_check "$requests requests of $bios bios" test "$requests" -ge 100
t_nothing_else "nobody registered: nothing of the hook runs" ""

t_insmod nvidia-fs
t_wait 10 test -c /dev/nvidia-fs0 || t_fail "nvidia-fs.ko made no /dev/nvidia-fs0"
nvfs_copy make "$t_tmp/f" 4M 1 || t_fail "make a file"
dd if="$t_tmp/f" of="$dev" bs=1M oflag=direct conv=notrunc,nocreat status=none || t_fail "dd to $dev"
nvfs_hold "$dev" "$t_tmp/hold" >"$t_tmp/out" 2>&1 &
holder=$!
t_wait 10 test -e "$t_tmp/hold.ready" || t_fail "nvfs_hold: $(cat "$t_tmp/out")"
t_filter 'nvfs_*:mod:nvme' '*:mod:nvidia_fs'
t_traced t_host
t_check "$requests requests of $bios bios" test "$requests" -ge 100
n=$(t_calls nvfs_map)
t_check "the hook runs once a request: $n" test "$n" = "$requests"
n=$(t_calls nvfs_is_gpu_page)
t_check "nvidia-fs is asked once a bio: $n" test "$n" = "$bios"
n=$(t_calls nvfs_carrier_find)
t_check "and looks at one page for it: $n" test "$n" = "$bios"
t_nothing_else "and that is all" "nvfs_map nvfs_is_gpu_page nvfs_carrier_find"

# all locks and allocations of the kernel are many: a few requests do
t_filter 'nvfs_*:mod:nvme' '*:mod:nvidia_fs' "${costly[@]}"
t_traced dd if="$dev" of=/dev/null bs=4k count=8 iflag=direct status=none
t_check "locks are seen ($(grep -c '_raw_spin_lock' "$t_tmp/raw"))" grep -q ': _raw_spin_lock <-' "$t_tmp/raw"
t_check "the hook ran for them" grep -q '^nvfs_map ' "$t_tmp/trace"
t_nothing_else "no lock and no allocation" "nvfs_map nvfs_is_gpu_page nvfs_carrier_find"

# and the way of GPU memory, which is what must not show above
t_filter '*:mod:nvidia_fs'
echo >$trace/trace
echo 1 >$trace/tracing_on
touch "$t_tmp/hold.go"
wait $holder || t_bad "the mapping no longer works: $(cat "$t_tmp/out")"
echo 0 >$trace/tracing_on
t_check "a look-up for GPU memory is seen" grep -q ': nvfs_carrier_search <-' $trace/trace
echo nop >$trace/current_tracer
t_unload
t_done
