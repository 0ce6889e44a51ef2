#!/bin/bash
# SPDX-License-Identifier: MIT
# kernels: 7
# core: 7
# vm: --trace --nvme 2 --gpus 2 --mem 2G --vram 1G
# time: 100
# time-long: 400
# Guards the library on a stock kernel: the module's P2PDMA carriers and the kernel's own nvme
# driver, no hook anywhere. The first program anybody runs (64 MiB, strict), random requests against
# pread and pwrite, many threads with a close, a deregistration, a free and a kill in the middle,
# freed and reused memory; and memory that was read through BAR1 before it was registered, which
# must not keep it from having pages. Fails on a wrong byte, on a whole block that did not go
# direct, when what the controllers moved over the card's BAR, seen from outside, is not what the
# reports say, and when a pin stays. T_SEED repeats a run.
. "$(dirname "$0")/lib.sh"

export CUFILE_LOGFILE_PATH=$t_tmp/cufile.log T_STOCK=y
ex=$t_top/build/host/examples
seed=${T_SEED:-$RANDOM}
prop=(--triples 15 --holes 5 --max-bytes 96M) seconds=4 ends=2
[ -z "${OPENGDS_LONG:-}" ] || prop=(--triples 250 --holes 30 --max-bytes 2G) seconds=30 ends=10

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

OPENGDS_STRICT=1 program 100 "$ex/hello_gds" /mnt/a/hello.dat 64M
t_check "all of it direct" grep -qE "^routes: write nvfs $((64 << 20)) read nvfs $((64 << 20))\$" "$t_tmp/out"
for fs in a b; do
	program 200 cufile_prop --file /mnt/$fs/prop.dat --mirror "$t_tmp/mirror" --seed "$seed" "${prop[@]}"
done
program 100 cufile_stress --dir /mnt/a --dir /mnt/b --cards 2 --seconds $seconds --seed "$seed"
for stop in close deregister free kill; do
	program 100 cufile_stress --dir /mnt/a --dir /mnt/b --cards 2 --seconds $ends --stop $stop \
		--seed "$seed"
done
program 100 cufile_reuse --dir /mnt/a --threads 4 --seconds $seconds --seed "$seed"
program 60 cufile_bar pages --file /mnt/a/bar.dat --seed "$seed"
t_check_pins
t_unload
t_done
