# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034,SC2154 # sourced by guest
# btrfs: it looks at the pages (checksums, compression), and has device numbers of its own.

on_variants() { printf '%s\n' plain compress nodatacow subvolume raid1; }

on_up() {
	local drive
	m_tool mkfs.btrfs btrfs-progs
	drive=$(m_drive 0)
	case $1 in
	plain | nodatacow) m_fs btrfs "$drive" ;;
	compress)
		M_OPTS=compress-force=zlib m_fs btrfs "$drive"
		m_opts=(--soft)
		;;
	subvolume)
		m_fs btrfs "$drive"
		btrfs -q subvolume create "$m_dir/sub" || t_fail "btrfs subvolume create"
		m_dir=$m_dir/sub
		;;
	raid1)
		wipefs -qa "$(m_drive 1)"
		M_OPTS=device=$(m_drive 1) m_fs btrfs "$drive" -d raid1 -m raid1 "$(m_drive 1)"
		;;
	esac
}

on_file() {
	[ "$2" != nodatacow ] || { touch "$1" && chattr +C "$1"; } || t_fail "chattr +C $1"
}

on_again() {
	local m=$m_dir n
	m_dir=${m_dir%/sub}
	n=$(btrfs device stats "$m_dir" | awk '{ n += $2 } END { print n }')
	[ "$n" = 0 ] || t_fail "btrfs counted $n errors"
	m_again
	m_dir=$m
}

on_down() {
	m_dir=${m_dir%/sub}
	m_down
	[ "$1" != raid1 ] || wipefs -qa "$(m_drive 0)" "$(m_drive 1)" || t_fail "wipefs"
}
