#!/bin/bash
# SPDX-License-Identifier: MIT
# kernels: 6.1 6.12 7 debug
# core: 7
# time: 40
# Guards that all modules load and unload on each kernel, in any order, again and again.
# Where no hooked driver exists, the direct route must be refused with its reason and the
# bounce route must work. Fails when a module does not load, does not unload, or when a
# refusal does not say why.
. "$(dirname "$0")/lib.sh"

rounds="1 2 3"
! t_short || rounds="1 2"
for round in $rounds; do
	t_load
	t_mkfs ext4 0 /mnt
	t_run "bounce, round $round" sh -c "nvfs_copy make /mnt/f 4M 1 &&
		nvfs_copy read --route bounce --file /mnt/f --size 4M --no-proof &&
		nvfs_copy write --route bounce --file /mnt/g --size 4M --no-proof"
	if t_hook_there; then
		t_run "nvfs, round $round" sh -c "nvfs_copy read --route nvfs --file /mnt/f \
			--size 4M --no-proof &&
			nvfs_copy write --route nvfs --file /mnt/g --size 4M --no-proof"
	else
		t_expect "nvfs, round $round" EOPNOTSUPP "no storage driver with the nvfs hook is attached" \
			nvfs_try read --file /mnt/f
	fi
	t_unload
	t_check "all unloaded, round $round" test ! -d /sys/module/nvidia_fs
done

# without a GPU driver, and without a storage driver: loads, says what is missing
t_insmod nvidia-fs
t_check "nvidia-fs alone has its version" grep -q ^version: $t_proc/version
t_check "no storage driver is attached" test -z "$(grep ^nvme: $t_proc/modules)"
t_unload
t_done
