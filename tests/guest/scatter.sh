#!/bin/bash
# SPDX-License-Identifier: MIT
# vm: --trace
# kernels: 6.12 7 debug
# core: none
# time: 120
# Guards GPU memory whose 64-KiB pages lie anywhere in the card: in one run, in 2-MiB
# runs, single in descending order, every other one, and drawn at random; with both page
# table versions. Fails as direct.sh does: a segment joined where the pages are not
# adjacent, or cut at the wrong place, shows as wrong content.
. "$(dirname "$0")/lib.sh"

t_hook_there || t_skip "no hooked nvme driver for kernel $OPENGDS_KERNEL"
for version in 2 1; do
	T_SIM="table_version=$version" t_load
	t_mkfs ext4 0 /mnt
	for pattern in contig 2m 64k reverse alternate random:1 random:2; do
		[ $version = 2 ] || [ $pattern = random:1 ] || continue
		GPU_SIM_SCATTER=$pattern nvfs_direct --dir /mnt --quick >"$t_tmp/out" 2>&1 ||
			t_bad "table $version, $pattern"
		sed "s/^/  v$version $pattern: /" "$t_tmp/out" | grep -E 'BAD|cases|  .*:   ' ||
			t_bad "table $version, $pattern: no output"
	done
	t_unload
done
t_done
