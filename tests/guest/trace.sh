#!/bin/bash
# SPDX-License-Identifier: MIT
# kernels: 6.1 6.12 7 debug
# time: 30
# Guards the tracepoints of system nvfs around one read and the ways a mapping dies. Fails
# when an event is missing or comes twice, when a field is not what the request was, when the
# segments do not add up to the request, are not given back, or name another address than one
# in the card's BAR.
. "$(dirname "$0")/lib.sh"

t_hook_there || t_skip "no hooked nvme driver for kernel $OPENGDS_KERNEL"
t_tracing=/sys/kernel/tracing
t_tracefs
T_NVFS="pin_mode=callback" t_load
[ -d $t_tracing/events/nvfs ] || t_fail "no events of system nvfs"
t_mkfs ext4 0 /mnt
nvfs_copy make /mnt/f 1M 1 || t_fail "cannot make /mnt/f"

# t_events COMMAND...: what it causes, in $t_tmp/trace, one line an event: NAME FIELDS
t_events() {
	echo 0 >$t_tracing/tracing_on
	echo >$t_tracing/trace
	echo 1 >$t_tracing/events/nvfs/enable
	echo 1 >$t_tracing/tracing_on
	"$@" >"$t_tmp/out" 2>&1
	exec 5<>/dev/nvidia-fs0	# closing it waits for teardowns
	exec 5>&-
	echo 0 >$t_tracing/tracing_on
	echo 0 >$t_tracing/events/nvfs/enable
	sed -n 's/^.*: \(nvfs_[a-z_]*\): /\1 /p' $t_tracing/trace >"$t_tmp/trace"
}
# t_field NAME FIELD: its values, one a line
t_field() { sed -n "s/^$1 .*\b$2=\([^ ]*\).*/\1/p" "$t_tmp/trace"; }
t_sum() { awk '{ n += $1 } END { print n + 0 }'; }
t_is() {
	local got
	got=$(t_field "$2" "$3" | tr '\n' ' ' | sed 's/ $//')
	if [ "$got" = "$4" ]; then t_ok "$1"; else t_bad "$1: wanted $3=$4 of $2, got '$got'"; fi
}

t_events nvfs_try read --file /mnt/f --size 256K --file-off 128K --seed 1
t_check "the read worked" grep -q "^GPU pattern" "$t_tmp/out"
t_is "map: once, all right" nvfs_map ret 0
t_is "map: the buffer" nvfs_map size 262144
t_is "map: its blocks" nvfs_map blocks 64
t_is "map: how it is pinned" nvfs_map pin callback
cpu=$(t_field nvfs_map cpu)
t_is "submit: of this mapping" nvfs_submit cpu "$cpu"
t_is "submit: the file" nvfs_submit ino "$(stat -c %i /mnt/f)"
t_is "submit: its place" nvfs_submit pos 131072
t_is "submit: its length" nvfs_submit len 262144
t_is "submit: over carriers" nvfs_submit by_cpu 0
t_check "submit: a READ" grep -q '^nvfs_submit READ ' "$t_tmp/trace"
t_is "complete: bytes" nvfs_complete ret 262144
t_is "complete: the file" nvfs_complete ino "$(stat -c %i /mnt/f)"
t_check "dma_map: adds up" test "$(t_field nvfs_dma_map len | t_sum)" = 262144
t_check "dma_unmap: adds up" test "$(t_field nvfs_dma_unmap len | t_sum)" = 262144
t_check "dma_unmap: the same segments" test \
	"$(t_field nvfs_dma_map addr | sort)" = "$(t_field nvfs_dma_unmap addr | sort)"
drive=$(basename "$(readlink -f "/sys/block/$(basename "$(t_drive 0)")/device/device")")
t_check "dma_map: the drive" test "$(t_field nvfs_dma_map dev | sort -u)" = "$drive"
t_check "dma_map: this mapping" test "$(t_field nvfs_dma_map cpu | sort -u)" = "$cpu"
t_in_bar() {
	local a from to rest card=(/sys/bus/pci/drivers/gpu-sim/*:*)
	while read -r from to rest; do
		for a in $(t_field nvfs_dma_map addr); do
			((a >= from && a <= to && to > from)) || continue 2
		done
		return 0
	done <"${card[0]}/resource"
	return 1
}
t_check "dma_map: addresses of the card's BAR" t_in_bar
t_is "die: unmapped, then gone" nvfs_die why "munmap gone"
t_check "they come in this order" test \
	"$(cut -d' ' -f1 "$t_tmp/trace" | uniq | grep -v dma | tr '\n' ' ')" = \
	"nvfs_map nvfs_submit nvfs_complete nvfs_die "

# journalled data go through the page cache; the mark has no meaning beside delayed allocation
t_umount /mnt
mount -o noinit_itable,nodelalloc "$(t_drive 0)" /mnt || t_fail "mount with nodelalloc"
t_mounts=(/mnt "${t_mounts[@]}")
nvfs_copy make /mnt/j 64K 1 || t_fail "cannot make /mnt/j"
chattr +j /mnt/j || t_fail "chattr +j"
t_events nvfs_try read --file /mnt/j --size 64K --seed 1
t_is "a file that the CPU moves: submitted as such" nvfs_submit by_cpu 1
t_is "... and complete" nvfs_complete ret 65536
t_check "... and no segment of it" test -z "$(t_field nvfs_dma_map len)"
t_events nvfs_extend --dir /mnt
t_check "die: the UNMAP ioctl" grep -q '^nvfs_die .*why=unmap$' "$t_tmp/trace"
t_events nvfs_life free --file /mnt/g --rounds 1 --seed 1
t_check "die: the GPU memory is freed" grep -q '^nvfs_die .*why=freed$' "$t_tmp/trace"
t_check "as many end as began" test "$(grep -c ^nvfs_submit "$t_tmp/trace")" = \
	"$(grep -c ^nvfs_complete "$t_tmp/trace")"
t_unload
t_done
