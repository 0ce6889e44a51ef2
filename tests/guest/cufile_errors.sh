#!/bin/bash
# SPDX-License-Identifier: MIT
# kernels: 6.12
# vm: --nvme 2 --gpus 2 --mem 2G --vram 512M
# time: 60
# Guards what the API answers to what is wrong or at a limit: once with nothing loaded (host
# memory stands for the GPU, no direct route), once with card, drive and module, on ext4.
# Fails when a call returns another error than documented, hangs or crashes, when the log
# has no line that names the object and the next step, or when a case ran in neither half.
. "$(dirname "$0")/lib.sh"

t_hook_there || t_skip "no hooked nvme driver for kernel $OPENGDS_KERNEL"

# errors NAME ARGUMENTS...
errors() {
	local name=$1
	shift
	cufile_errors "$@" >"$t_tmp/$name" 2>&1 || t_bad "cufile_errors, $name"
	sed "s/^/  $name: /" "$t_tmp/$name"
}

mkdir -p "$t_tmp/dir"
errors bare --dir "$t_tmp/dir"
t_load
t_mkfs ext4 0 /mnt
t_wait 20 t_drive 1 >/dev/null || t_fail "drive 1 (serial gds1) did not appear"
errors loaded --dir /mnt --block "$(t_drive 1)"
while IFS= read -r name; do
	grep -qE "^(ok |BAD) $name(:|\$)" "$t_tmp/bare" "$t_tmp/loaded" ||
		t_bad "case $name ran in neither half"
done < <(cufile_errors --list)
t_unload
t_done
