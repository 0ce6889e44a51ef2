# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# For the guest tests: modules, drives, results. A test sources this first.
#
# A test passes when it ends with status 0, is skipped with 77, fails otherwise. What it
# loaded and mounted is taken away when it ends, so that the next one in the same boot
# starts clean; a test that passed must have done that itself with t_unload, which checks
# that nothing stayed pinned.
#
# Kernel log lines from here start with "opengds:".

set -u
t_top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
t_bin=$t_top/build/host/tests/clients
t_name=$(basename "$0" .sh)
t_proc=/proc/driver/nvidia-fs
t_tmp=/tmp/$t_name
t_mounts=()
t_failed=0
mkdir -p "$t_tmp"
PATH=$t_bin:$PATH

t_say() { printf '%s\n' "$*"; }
t_ok() { printf '  ok   %s\n' "$*"; }

# t_bad TEXT: note a failure and go on; t_done turns it into the result
t_bad() {
	printf '  BAD  %s\n' "$*"
	t_failed=$((t_failed + 1))
}

t_fail() {
	printf '  FAIL %s\n' "$*"
	exit 1
}

t_skip() {
	printf '  SKIP %s\n' "$*"
	exit 77
}

# t_check TEXT COMMAND...: ok or bad, by the command's status
t_check() {
	local text=$1
	shift
	if "$@"; then t_ok "$text"; else t_bad "$text"; fi
}

t_done() {
	[ "$t_failed" = 0 ] || t_fail "$t_failed checks failed"
	exit 0
}

# t_wait SECONDS COMMAND...: until it succeeds
t_wait() {
	local left=$(($1 * 10))
	shift
	until "$@" 2>/dev/null; do
		left=$((left - 1))
		[ "$left" -gt 0 ] || return 1
		sleep 0.1
	done
}

t_loaded() { [ -d "/sys/module/${1//-/_}" ]; }

# a kernel with checkers: slower, so that there is less to do
t_debug() { [[ $OPENGDS_KERNEL = debug* ]]; }
# there, and in make check, which has a short cut of what check-guest and check-kernels run whole
t_short() { t_debug || [ -n "${OPENGDS_CORE:-}" ]; }

# what a test that uses the hook needs: a driver that an edit set fitted
t_hook_there() { [ -f "$OPENGDS_BUILD/nvme.ko" ]; }

t_insmod() {
	local ko=$1
	shift
	insmod "$OPENGDS_BUILD/$ko.ko" "$@" || t_fail "insmod $ko.ko $*: $(dmesg | tail -3)"
}

# t_load: card, drive and module, in the order a machine has them. T_SIM holds parameters of
# gpu-sim, T_NVFS of nvidia-fs; T_STOCK=y takes the kernel's own nvme driver.
t_load() {
	local -a sim=() nvfs=()
	read -ra sim <<<"${T_SIM:-}"
	read -ra nvfs <<<"${T_NVFS:-}"
	t_insmod gpu-sim "${sim[@]}"
	modprobe -q nvme-core || t_fail "modprobe nvme-core"
	if [ "${T_STOCK:-}" = y ] || ! t_hook_there; then
		modprobe -q nvme || t_fail "modprobe nvme"
	else
		t_insmod nvme
	fi
	t_insmod nvidia-fs "${nvfs[@]}"
	t_wait 10 test -c /dev/gpu-sim0 || t_fail "gpu-sim.ko made no /dev/gpu-sim0"
	t_wait 10 test -c /dev/nvidia-fs0 || t_fail "nvidia-fs.ko made no /dev/nvidia-fs0"
}

# One counter of the simulated driver, summed over the cards: pins, dma_maps, free_pages,
# total_pages
t_sim() {
	local sum=0 file
	for file in /sys/bus/pci/drivers/gpu-sim/*/gpu_sim/"$1"; do
		[ -r "$file" ] || t_fail "no counter $1 of the simulated GPU ($file)"
		sum=$((sum + $(<"$file")))
	done
	echo "$sum"
}

# t_stat LINE FIELD: one number of the module's statistics
t_stat() {
	sed -n "s/^$1[[:space:]]*:.*[[:space:]]$2=\(-\{0,1\}[0-9]*\).*/\1/p" $t_proc/stats
}

# t_free_kb: memory that the kernel could hand out, in KiB: free, on the processors' own lists
# (they grow to tens of MiB by themselves and are not in MemFree), and what holds contents of files
t_free_kb() {
	sync
	echo 3 >/proc/sys/vm/drop_caches
	sleep 0.5
	awk '/^(MemFree|Buffers|Cached|SReclaimable):/ { kb += $2 } /^Shmem:/ { kb -= $2 }
		$1 == "count:" { kb += 4 * $2 }
		END { print kb }' /proc/meminfo /proc/zoneinfo
}

# t_memory_back BEFORE: is all memory back, noise aside, since t_free_kb printed BEFORE? Sets
# t_lost (KiB). The debug kernel's checkers keep what was freed for a while.
t_memory_back() {
	t_lost=$(($1 - $(t_free_kb)))
	[ "$t_lost" -lt "$(t_noise_kb)" ]
}
t_noise_kb() { if t_debug; then echo 16384; else echo 4096; fi; }

t_quiet() { [ "$(t_sim pins)" = 0 ] && [ "$(t_stat Bar1-map active)" = 0 ]; }

# Nothing may be pinned or DMA-mapped once no process has anything mapped.
t_check_pins() {
	t_wait 10 t_quiet ||
		t_bad "pins stay: gpu-sim $(t_sim pins), nvidia-fs $(t_stat Bar1-map active)"
	[ "$(t_sim dma_maps)" = 0 ] || t_bad "$(t_sim dma_maps) DMA mappings stay"
}

t_umount_all() {
	local m
	t_tracing_off
	for m in "${t_mounts[@]}"; do
		umount "$m" || t_bad "umount $m"
	done
	t_mounts=()
}

t_unload() {
	local m
	t_umount_all
	if t_loaded nvidia_fs && t_loaded gpu_sim; then t_check_pins; fi
	for m in nvidia-fs plug-test hook-test nvme gpu-sim; do
		t_loaded "$m" || continue
		timeout 30 rmmod "$m" || t_bad "rmmod $m: refs $(<"/sys/module/${m//-/_}/refcnt")"
	done
}

t_cleanup() {
	local status=$? m
	trap - EXIT
	# shellcheck disable=SC2046 # one word a process
	if [ -n "$(jobs -p)" ]; then kill -9 $(jobs -p) 2>/dev/null; fi
	wait
	t_tracing_off
	for m in "${t_mounts[@]}"; do umount -l "$m" 2>/dev/null; done
	for m in nvidia-fs plug-test hook-test nvme gpu-sim; do
		if t_loaded "$m"; then timeout 30 rmmod "$m" 2>/dev/null; fi
	done
	[ "$status" != 0 ] || ! t_loaded nvidia_fs || status=1
	exit "$status"
}
trap t_cleanup EXIT

# t_drive N: the block device of drive N (serial gdsN)
t_drive() {
	local d
	for d in /sys/block/nvme*; do
		[ -e "$d/device/serial" ] || continue
		[ "$(tr -d ' ' <"$d/device/serial")" = "gds$1" ] || continue
		# a path of a namespace that several controllers reach has no node
		[ -b "/dev/${d##*/}" ] || continue
		echo "/dev/${d##*/}"
		return 0
	done
	return 1
}

# t_mkfs TYPE N DIR [SIZE]: a fresh file system of drive N, mounted on DIR
t_mkfs() {
	local type=$1 n=$2 dir=$3 size=${4:-} dev
	t_wait 20 t_drive "$n" >/dev/null || t_fail "drive $n (serial gds$n) did not appear"
	dev=$(t_drive "$n")
	# shellcheck disable=SC2086 # no word when it is empty
	case $type in
	ext4) mkfs.ext4 -q -F -E nodiscard,lazy_itable_init=1 -J size=16 "$dev" $size ;;
	xfs) mkfs.xfs -q -f -K "$dev" ;;
	*) t_fail "t_mkfs: unknown type $type" ;;
	esac || t_fail "mkfs.$type $dev"
	t_mount "$type" "$dev" "$dir"
}

t_mount() {
	local opts=defaults
	[ "$1" != ext4 ] || opts=noinit_itable
	mkdir -p "$3"
	mount -t "$1" -o "$opts" "$2" "$3" || t_fail "mount $2 ($1)"
	t_mounts=("$3" "${t_mounts[@]}")
}

t_umount() {
	local m keep=()
	umount "$1" || t_fail "umount $1"
	for m in "${t_mounts[@]}"; do [ "$m" = "$1" ] || keep+=("$m"); done
	t_mounts=(${keep[@]+"${keep[@]}"})
}

# debugfs, which is gone again at the end
t_debugfs() {
	mountpoint -q /sys/kernel/debug && return 0
	mount -t debugfs debugfs /sys/kernel/debug || t_skip "kernel $OPENGDS_KERNEL has no debugfs"
	t_mounts+=(/sys/kernel/debug)
}

# The tracer as a boot has it: the tests of one machine share it.
t_tracing_off() {
	local t=/sys/kernel/tracing
	[ -w $t/tracing_on ] || return 0
	{
		echo nop >$t/current_tracer
		echo >$t/set_ftrace_filter
		echo 0 >$t/events/enable
		echo >$t/trace
		echo 1 >$t/tracing_on
	} 2>/dev/null
}

# tracefs, likewise
t_tracefs() {
	[ ! -d /sys/kernel/tracing/events ] || return 0
	mount -t tracefs tracefs /sys/kernel/tracing ||
		t_skip "kernel $OPENGDS_KERNEL has no tracefs"
	t_mounts+=(/sys/kernel/tracing)
}

# t_run TEXT COMMAND...: its output shown when it fails
t_run() {
	local text=$1 status=0
	shift
	"$@" >"$t_tmp/out" 2>&1 || status=$?
	if [ "$status" = 0 ]; then
		t_ok "$text"
	else
		sed 's/^/    /' "$t_tmp/out"
		t_bad "$text (status $status)"
	fi
	return 0
}

# t_expect TEXT ERRNO REGEX COMMAND...: nvfs_try must fail with that errno (a regex as well)
# and a message that matches
t_expect() {
	local text=$1 errno=$2 regex=$3 out
	shift 3
	out=$("$@" 2>&1)
	if grep -qE "^ERR $errno " <<<"$out" && grep -qE -- "$regex" <<<"$out"; then
		t_ok "$text: $errno"
	else
		t_bad "$text: wanted $errno /$regex/, got: $out"
	fi
}
