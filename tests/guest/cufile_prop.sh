#!/bin/bash
# SPDX-License-Identifier: MIT
# kernels: 6.12
# vm: --trace --vram 2G --mem 2G
# time: 60
# time-long: 900
# Guards that cuFileRead and cuFileWrite are pread and pwrite with GPU memory: random file
# offsets, sizes up to 256 MiB and buffer offsets, registered and not, on ext4 and xfs, with
# a second file by plain pread and pwrite beside it; then on a file with holes. 60 triples
# and 512 MiB a file system; with OPENGDS_LONG=1 in the guest 500 triples and 8 GiB.
# Fails at the first byte that differs in the file, in GPU memory or around them, when a
# whole 4-KiB block did not go direct, or when what the drives moved over the card's BAR,
# seen from outside, is not what the reports say. Then some of it through host memory, with
# io_uring and where sysctl kernel.io_uring_disabled refuses it. T_SEED repeats a run.
. "$(dirname "$0")/lib.sh"

t_hook_there || t_skip "no hooked nvme driver for kernel $OPENGDS_KERNEL"
export CUFILE_LOGFILE_PATH=$t_tmp/cufile.log
seed=${T_SEED:-$RANDOM}
args=(--triples 60 --holes 20 --max-bytes 512M)
indirect=(--triples 20 --holes 5 --max-bytes 128M)
[ -z "${OPENGDS_LONG:-}" ] || args=(--triples 500 --holes 50 --max-bytes 8G)
# its checkers make every copy slow
if t_short; then
	args=(--triples 20 --holes 10 --max-bytes 96M)
	indirect=(--triples 8 --holes 3 --max-bytes 48M)
fi

t_load
for fs in ext4 xfs; do
	t_mkfs $fs 0 /mnt
	cufile_prop --file /mnt/prop.dat --mirror "$t_tmp/mirror" --seed "$seed" "${args[@]}" \
		>"$t_tmp/out" 2>&1 || t_bad "cufile_prop on $fs, seed $seed"
	sed "s/^/  $fs: /" "$t_tmp/out"
	[ "$t_failed" = 0 ] || tail -n 20 "$CUFILE_LOGFILE_PATH" | sed "s/^/  $fs log:/"
	t_umount /mnt
done

# the same through host memory: large requests by io_uring, then by threads, where the kernel
# gives it to nobody
cat >"$t_tmp/indirect.json" <<-E
	{"logging": {"level": "INFO"}, "opengds": {"routes": ["bounce", "host"]}}
	E
ring=/proc/sys/kernel/io_uring_disabled
t_mkfs ext4 0 /mnt
for off in 0 2; do
	[ -e $ring ] || t_fail "this kernel has no $ring"
	echo $off >$ring
	CUFILE_ENV_PATH_JSON=$t_tmp/indirect.json CUFILE_LOGFILE_PATH=$t_tmp/log.$off \
		cufile_prop --file /mnt/prop.dat --mirror "$t_tmp/mirror" --seed "$seed" --no-direct \
		"${indirect[@]}" >"$t_tmp/out" 2>&1 ||
		t_bad "cufile_prop through host memory, io_uring_disabled $off, seed $seed"
	sed "s/^/  io_uring_disabled $off: /" "$t_tmp/out"
done
echo 0 >$ring
t_umount /mnt
t_check "with io_uring nobody complains" test "$(grep -c io_uring_setup "$t_tmp/log.0")" = 0
t_check "without it the log says so, once" \
	test "$(grep -c 'io_uring_setup: EPERM' "$t_tmp/log.2")" = 1
t_unload
t_done
