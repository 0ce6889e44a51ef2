# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034 # sourced by guest
# f2fs: plain, and with compressed files.

on_variants() { printf '%s\n' plain compress; }

on_needs() {
	m_module f2fs
	if [ "$1" = compress ] && [ ! -e /sys/fs/f2fs/features/compression ]; then
		echo "kernel $OPENGDS_KERNEL has no CONFIG_F2FS_FS_COMPRESSION"
	fi
}

on_up() {
	m_tool mkfs.f2fs f2fs-tools
	case $1 in
	plain) m_fs f2fs "$(m_drive 0)" ;;
	compress)
		M_OPTS='compress_algorithm=lz4,compress_extension=*' \
			m_fs f2fs "$(m_drive 0)" -O extra_attr,compression
		m_opts=(--soft --lacks punch)
		;;
	esac
}

on_down() { m_down; }
