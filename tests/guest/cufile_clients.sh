#!/bin/bash
# SPDX-License-Identifier: MIT
# kernels: 6.12
# vm: --nvme 1 --gpus 1 --mem 2G --vram 1G
# time: 60
# Guards that the library serves its known clients (tests/clients/cl_*.c: their calls, their habits)
# with card, drive and module on ext4: under strict, so that a client whose whole blocks would not
# go direct fails. cl_cucim reads host memory too, which nothing moves directly: without strict.
# Fails when a client gets a wrong byte, a short count or another code than it can live with.
. "$(dirname "$0")/lib.sh"

t_hook_there || t_skip "no hooked nvme driver for kernel $OPENGDS_KERNEL"
printf '{ "properties": { "allow_compat_mode": true } }\n' >"$t_tmp/cufile.json"
export CUFILE_ENV_PATH_JSON=$t_tmp/cufile.json CUFILE_LOGFILE_PATH=$t_tmp/cufile.log CL_DIRECT=1
t_load
t_mkfs ext4 0 /mnt
for src in "$t_top"/tests/clients/cl_*.c; do
	name=$(basename "$src" .c)
	strict=true
	[ "$name" != cl_cucim ] || strict=false
	t_check "$name, strict $strict" env OPENGDS_STRICT=$strict "$name" /mnt/data </dev/null
	[ ! -s "$CUFILE_LOGFILE_PATH" ] || sed "s/^/  $name: /" "$CUFILE_LOGFILE_PATH"
	rm -f /mnt/data* "$CUFILE_LOGFILE_PATH"
done
t_umount /mnt
t_unload
t_done
