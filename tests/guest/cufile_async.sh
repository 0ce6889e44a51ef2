#!/bin/bash
# SPDX-License-Identifier: MIT
# kernels: 6.12 debug
# vm: --trace --vram 2G --mem 2G
# time: 15
# Guards batches and stream operations of the library in the guest: written and read back by
# batches from registered memory, direct; 256 reads on two streams whose numbers are set in
# stream order, registered and not. Fails on a wrong byte, a result that is not exact, an
# order that is not the stream's, a whole block that would not go direct, or a pin that stays.
. "$(dirname "$0")/lib.sh"

t_hook_there || t_skip "no hooked nvme driver for kernel $OPENGDS_KERNEL"
export CUFILE_LOGFILE_PATH=$t_tmp/cufile.log
t_load
for fs in ext4 xfs; do
	t_mkfs $fs 0 /mnt
	t_check "cufile_async on $fs" cufile_async /mnt/async.dat --direct
	[ ! -s "$CUFILE_LOGFILE_PATH" ] || sed 's/^/  log:/' "$CUFILE_LOGFILE_PATH"
	t_check "nothing to say in the log" [ ! -s "$CUFILE_LOGFILE_PATH" ]
	t_umount /mnt
done
t_unload
t_done
