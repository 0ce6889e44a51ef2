# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034,SC2154 # sourced by guest
# XFS on a drive: plain, files that share their blocks, files on the realtime device.

on_variants() { printf '%s\n' plain reflink rt; }

on_up() {
	local drive
	drive=$(m_drive 0)
	case $1 in
	plain) m_fs xfs "$drive" ;;
	reflink)
		m_fs xfs "$drive" -m reflink=1
		matrix_file make "$m_dir/base" 1500000 5 || t_fail "no file to share blocks with"
		m_opts=(--made 5)
		;;
	# all new files are on the other drive
	rt) M_OPTS=rtdev=$(m_drive 1) m_fs xfs "$drive" -d rtinherit=1 -r "rtdev=$(m_drive 1)" ;;
	esac
}

on_file() {
	[ "$2" != reflink ] || cp --reflink=always "$m_dir/base" "$1" || t_fail "cp --reflink"
}

on_again() {
	m_again
	[ "$1" != reflink ] || matrix_file made "$m_dir/base" 5 ||
		t_fail "the file that shared its blocks has changed"
}

on_down() { m_down; }
