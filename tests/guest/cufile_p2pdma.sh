#!/bin/bash
# SPDX-License-Identifier: MIT
# kernels: 7
# core: 7
# vm: --trace --nvme 2 --gpus 2 --mem 2G --vram 1G
# time: 90
# time-long: 500
# Guards the library on a stock kernel: the module's P2PDMA carriers and the kernel's own nvme
# driver, no hook anywhere; and the same pages mapped into the process (route p2pdma), when `routes`
# leaves the module's requests out. The first program anybody runs (64 MiB, strict), random requests against
# pread and pwrite, many threads with a close, a deregistration, a free and a kill in the middle,
# freed and reused memory; and memory that was read through BAR1 before it was registered, which
# must not keep it from having pages; a batch of 256 entries of 4 KiB, which is two system calls at
# most. Fails on a wrong byte, on a whole block that did not go
# direct, when what the controllers moved over the card's BAR, seen from outside, is not what the
# reports say, and when a pin stays. T_SEED repeats a run.
. "$(dirname "$0")/lib.sh"

export CUFILE_LOGFILE_PATH=$t_tmp/cufile.log T_STOCK=y
ex=$t_top/build/host/examples
seed=${T_SEED:-$RANDOM}
prop=(--triples 5 --holes 3 --max-bytes 24M) seconds=2 size=$((16 << 20))
if t_short; then prop=(--triples 3 --holes 2 --max-bytes 8M) size=$((8 << 20)); fi
[ -z "${OPENGDS_LONG:-}" ] || prop=(--triples 250 --holes 30 --max-bytes 2G) seconds=30 size=$((64 << 20))

# program SECONDS COMMAND...: it passes
program() {
	local limit=$1 status=0
	shift
	timeout "$limit" "$@" >"$t_tmp/out" 2>&1 || status=$?
	sed 's/^/  /' "$t_tmp/out"
	t_check "$*: status $status" [ "$status" = 0 ]
	[ "$status" = 0 ] || [ ! -e "$CUFILE_LOGFILE_PATH" ] ||
		tail -n 20 "$CUFILE_LOGFILE_PATH" | sed 's/^/  log:/'
}

t_load
t_check "the nvme driver has no hook" test ! -e /sys/module/nvme/parameters/nvfs_requests
t_mkfs ext4 0 /mnt/a
t_mkfs xfs 1 /mnt/b

# by ROUTE: what follows goes by that one where it can
by() {
	route=$1
	t_say "by $route"
	export CUFILE_ENV_PATH_JSON=$t_tmp/$route.json
	cat >"$CUFILE_ENV_PATH_JSON" <<-E
		{"opengds": {"routes": ["$route", "staged", "bar", "bounce", "host"]},
		 "properties": {"io_batchsize": 256}}
	E
}

hello() {
	OPENGDS_STRICT=1 program 100 "$ex/hello_gds" /mnt/a/hello.dat $size
	t_check "all of it direct" grep -qE "^routes: write $route $size read $route $size\$" "$t_tmp/out"
}

prop() {
	program 200 cufile_prop --file "/mnt/$1/prop.dat" --mirror "$t_tmp/mirror" --seed "$seed" "${prop[@]}"
}

# stress [--stop HOW]
stress() {
	program 100 cufile_stress --dir /mnt/a --dir /mnt/b --cards 2 --seconds $seconds --seed "$seed" "$@"
}

# io_calls SIZE: how many system calls move data when gdsio reads so much at random, 256 entries of
# 4 KiB at a time
io_calls() {
	local of=/sys/kernel/tracing/events/syscalls call hits n=0
	for call in io_uring_enter pread64 pwrite64 preadv preadv2 read; do
		echo 'hist:keys=common_pid if comm == "gdsio"' >$of/sys_enter_$call/trigger
	done
	program 60 "$t_top/build/host/tools/gdsio/gdsio" -f /mnt/a/hello.dat -d 0 -w 1 -x 6 -B 256 -i 4K -I 2 -s "$1"
	t_check "all of it by pages" grep -qE ' p2pdma: [0-9]+ \(100\.00%\)' "$t_tmp/out"
	for call in io_uring_enter pread64 pwrite64 preadv preadv2 read; do
		hits=$(sed -n 's/^ *Hits: *//p' $of/sys_enter_$call/hist)
		t_say "$1: $call ${hits:-0}"
		n=$((n + ${hits:-0}))
		echo '!hist:keys=common_pid if comm == "gdsio"' >$of/sys_enter_$call/trigger
	done
	calls=$n
}

# what a start of gdsio costs is in both
batch_calls() {
	local few
	t_tracefs
	io_calls 4M
	few=$calls
	io_calls 8M
	t_check "4 batches of 256 entries: $((calls - few)) system calls" [ $((calls - few)) -le 8 ]
	t_check "they were counted" [ "$few" -ge 4 ]
}

by nvfs
hello
prop a
[ -z "${OPENGDS_LONG:-}" ] || prop b
stress --stop kill
program 100 cufile_reuse --dir /mnt/a --threads 4 --seconds $seconds --seed "$seed"
program 60 cufile_bar pages --file /mnt/a/bar.dat --seed "$seed"
by p2pdma
hello
batch_calls
prop b
stress --stop free
program 100 cufile_reuse --dir /mnt/a --threads 4 --seconds $seconds --seed "$seed"
if [ -n "${OPENGDS_LONG:-}" ]; then
	prop a
	for route in nvfs p2pdma; do
		by $route
		stress
		for stop in close deregister free kill; do stress --stop $stop; done
	done
fi
t_check_pins
t_unload
t_done
