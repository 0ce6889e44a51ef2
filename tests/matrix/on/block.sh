# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034 # sourced by guest
# The drive itself, without a file system, and a partition of it.

on_variants() { printf '%s\n' drive partition; }

on_up() {
	local drive
	drive=$(m_drive 0)
	wipefs -qa "$drive" || t_fail "wipefs $drive"
	m_file=$drive
	[ "$1" = partition ] || return 0
	# 4 KiB past a multiple of 2 MiB
	echo 'start=4104, size=65536, type=L' | sfdisk -q --no-reread --no-tell-kernel "$drive" ||
		t_fail "sfdisk $drive"
	blockdev --rereadpt "$drive" || t_fail "$drive: the new table was not read"
	m_file=${drive}p1
	t_wait 10 test -b "$m_file" || t_fail "no $m_file"
}

on_again() { echo 3 >/proc/sys/vm/drop_caches; }

on_down() {
	local drive
	drive=$(m_drive 0)
	wipefs -qaf "$drive" && blockdev --rereadpt "$drive" || t_fail "wipefs $drive"
}
