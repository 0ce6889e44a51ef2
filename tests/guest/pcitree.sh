#!/bin/bash
# SPDX-License-Identifier: MIT
# vm: --topology switch --cpu Haswell --nvme 2
# vm-more: --topology ports --cpu Haswell --nvme 2
# vm-more: --topology functions --cpu Haswell --nvme 2
# kernels: 6.12 7
# core: none
# time: 90
# Guards which way the module says that bytes go between card and drive: the kernel's own
# judgement (pci_p2pdma_distance(), where the kernel has it) is the same for each pair, with
# ACS of the bridges as it is and with every bit of theirs that redirects; `bridges` has just
# those whose control register has a bit; rows come and go with functions that are removed
# and found again, also while the files are read. Fails when one of them disagrees.
# The CPU is one whose host bridge the kernel does not trust: it says no to what goes there.
# shellcheck disable=SC2317 # functions are called by t_check
. "$(dirname "$0")/lib.sh"

t_hook_there || t_skip "no hooked nvme driver for kernel $OPENGDS_KERNEL"
devices=/sys/bus/pci/devices
judge=/sys/module/gpu_sim_test/parameters/p2pdma

ended() {
	local status=$?
	rmmod gpu-sim-test 2>/dev/null
	(exit "$status")
	t_cleanup
}
trap ended EXIT

# config BDF OFFSET BYTES: a little-endian number of the configuration space, decimal
config() { od -An -j "$2" -N "$3" -t "u$3" "$devices/$1/config"; }

# Where the ACS capability of each bridge is. Walked once: an emulated guest takes long for it.
declare -A acs_at
acs_find() {
	local at=256 head
	[ "$(stat -c %s "$devices/$1/config")" = 4096 ] || return 1
	while [ "$at" != 0 ]; do
		head=$(($(config "$1" $at 4)))
		[ $head != 0 ] && [ $head != 4294967295 ] || return 1
		if [ $((head & 0xffff)) = 13 ]; then
			acs_at[$1]=$at
			return 0
		fi
		at=$((head >> 20))
	done
	return 1
}
acs_get() { config "$1" $((acs_at[$1] + 6)) 2; }
acs_set() {
	local b hex
	printf -v hex %02x "$1"
	for b in "${with_acs[@]}"; do
		printf '%b' "\x$hex\x00" | dd of="$devices/$b/config" bs=2 seek=$(((acs_at[$b] + 6) / 2)) \
			conv=notrunc 2>/dev/null
	done
}

bridges_now() {
	local b
	for b in "${with_acs[@]}"; do
		[ $(($(acs_get "$b") & 0x7f)) = 0 ] || echo "$b"
	done | sort
}
bridges_agree() { [ "$(bridges_now)" = "$(sort "$t_proc/bridges")" ]; }

# agree: each pair's line in `opengds`, its distance, and the kernel's judgement
agree() {
	local gpu peer way hops distance bad=0 n=0 acs
	acs=$(bridges_now)
	while read -r gpu peer way; do
		n=$((n + 1))
		distance=$(awk -v g="$gpu" -v p="$peer" '$1 == g && $2 == p { print $4 }' $t_proc/peer_distance)
		echo "$gpu $peer" >"$judge" || return 1
		hops=$(<"$judge")
		case $way in
		handed*) [ "$hops" = none ] || [ "$hops" -gt 0 ] || bad=1
			# the kernel counts the way to the bridge from both ends
			[ "$hops" = none ] || [ "$hops" = $((distance + 1)) ] || [ -n "$acs" ] || bad=1 ;;
		redirected* | through*) [ "$hops" = none ] || [ "$hops" = -1 ] || bad=1 ;;
		*) bad=1 ;;
		esac
		[ $bad = 0 ] || {
			echo "    $gpu $peer: distance $distance, $way; the kernel says $hops"
			return 1
		}
	done < <(sed -n 's/^way \([^ ]*\) \([^ ]*\): /\1 \2 /p' $t_proc/opengds)
	[ $n = 2 ]
}
ways() { [ "$(sed -n 's/^way [^:]*:[^ ]* [^ ]*: //p' $t_proc/opengds | sort -u)" = "$1" ]; }
rows() { [ "$(tail -n +2 $t_proc/peer_distance | wc -l)" = "$1" ]; }

t_load
t_insmod gpu-sim-test
t_wait 20 t_drive 1 >/dev/null || t_fail "drive 1 did not appear"
gpu=$(basename "$(echo /sys/bus/pci/drivers/gpu-sim/*:*)")
drive=$(basename "$(readlink -f "/sys/block/$(basename "$(t_drive 1)")/device/device")")
port=$(basename "$(dirname "$(readlink -f "$devices/$gpu")")")
with_acs=()
for d in "$devices"/*; do
	[[ $(<"$d/class") = 0x0604* ]] && acs_find "${d##*/}" && with_acs+=("${d##*/}")
done
t_say "  card $gpu below $port, drive $drive; ${#with_acs[@]} bridges with ACS: ${with_acs[*]}"
t_check "there are bridges with ACS" test ${#with_acs[@]} -gt 0
echo "$gpu $drive" >"$judge"
if [ "$(<"$judge")" = none ]; then
	t_say "  kernel $OPENGDS_KERNEL has no CONFIG_PCI_P2PDMA: its own judgement is not asked"
fi

# what each machine must say with ACS off and with all that redirects on
case $(readlink -f "$devices/$gpu") in
*/"$port"/"$gpu") ;;
*) t_fail "$gpu is not below $port" ;;
esac
up=$(basename "$(dirname "$(readlink -f "$devices/$port")")")
if [ "$(dirname "$(readlink -f "$devices/$gpu")")" = "$(dirname "$(readlink -f "$devices/$drive")")" ]; then
	off="handed on by $port" on="redirected to the host bridge by ACS of $port"
elif [[ $up = pci* ]]; then
	off="through the host bridge" on=$off
else
	off="handed on by $up" on=$off	# the root port with ACS is above the switch
fi
acs_set 0
t_check "ACS off: $off" ways "$off"
t_check "ACS off: the kernel agrees" agree
t_check "ACS off: bridges" bridges_agree
for bits in 1 4 29; do
	acs_set $bits
	t_check "ACS $bits: bridges (${#with_acs[@]})" bridges_agree
	if [ $(($(acs_get "${with_acs[0]}"))) != $bits ]; then
		t_say "  the bridges do not take ACS bits $bits: $(acs_get "${with_acs[0]}")"
		continue
	fi
	t_check "ACS $bits: the kernel agrees" agree
	[ $bits = 1 ] || t_check "ACS $bits: $on" ways "$on"
	[ $bits != 1 ] || t_check "ACS $bits: $off" ways "$off"
done
acs_set 0

# removed and found again, while others read
t_check "two rows" rows 2
while :; do cat $t_proc/peer_distance $t_proc/opengds $t_proc/bridges; done >/dev/null &
reader=$!
for i in 1 2 3; do
	echo 1 >"$devices/$drive/remove"
	t_check "removed, $i: one row" rows 1
	echo 1 >/sys/bus/pci/rescan
	t_check "found again, $i: two rows" rows 2
done
kill $reader
wait $reader 2>/dev/null
t_wait 20 t_drive 1 >/dev/null || t_bad "the drive is not back"
t_mkfs ext4 1 /mnt
nvfs_copy make /mnt/f 1M 1
t_run "a read from the drive that came back" nvfs_try read --file /mnt/f
t_umount_all
acs_set 0
t_check "found again: the kernel agrees" agree

# other functions as GPUs
rmmod nvidia-fs
t_insmod nvidia-fs extra_gpu=1b36:0010
t_check "extra_gpu: the drives are GPUs, too" rows 6
rmmod nvidia-fs
refused() { ! insmod "$OPENGDS_BUILD/nvidia-fs.ko" extra_gpu="$1" 2>/dev/null; }
t_check "extra_gpu=1b36 is refused" refused 1b36
t_check "extra_gpu=1b36:00100 is refused" refused 1b36:00100
t_insmod nvidia-fs
rmmod gpu-sim-test
t_unload
t_done
