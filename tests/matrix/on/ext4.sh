# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034 # sourced by guest
# ext4 on a drive: how it keeps data, and what a file of it can be.

on_variants() {
	printf '%s\n' ordered writeback journal chattr-j inline encrypt verity bigalloc 1k noextents \
		hole unwritten extend
}

on_up() {
	local drive
	drive=$(m_drive 0)
	case $1 in
	ordered) m_fs ext4 "$drive" ;;
	writeback) M_OPTS=data=writeback m_fs ext4 "$drive" ;;
	journal) M_OPTS=data=journal m_fs ext4 "$drive" ;;
	# the mark has no meaning beside delayed allocation
	chattr-j) M_OPTS=nodelalloc m_fs ext4 "$drive" ;;
	inline)
		m_fs ext4 "$drive" -O inline_data -I 1024
		m_opts=(--start 700)
		# a fault of the kernel alone: the file is inline for the first requests only
		matrix_file inline "$m_dir/inline" || m_opts+=(--grow)
		;;
	encrypt)
		m_fs ext4 "$drive" -O encrypt
		mkdir "$m_dir/e"
		matrix_file encrypt "$m_dir" "$m_dir/e" || t_fail "no encryption policy"
		m_dir=$m_dir/e
		;;
	verity)
		m_fs ext4 "$drive" -O verity
		m_opts=(--made 5 --read-only)
		;;
	bigalloc) m_fs ext4 "$drive" -O bigalloc -C 65536 ;;
	1k) m_fs ext4 "$drive" -b 1024 ;;
	noextents)
		m_fs ext4 "$drive" -O '^extent,^64bit'
		m_opts=(--write-hole --lacks unwritten)
		;;
	# ordered, and most of the operations are of one kind
	hole) m_fs ext4 "$drive" && m_opts=(--ops punch) ;;
	unwritten) m_fs ext4 "$drive" && m_opts=(--ops unwritten) ;;
	extend) m_fs ext4 "$drive" && m_opts=(--ops 'truncate,extend' --start 5000) ;;
	esac
}

on_file() {
	case $2 in
	chattr-j) touch "$1" && chattr +j "$1" || t_fail "chattr +j $1" ;;
	verity)
		matrix_file make "$1" 1000000 5 && matrix_file verity "$1" || t_fail "no verity: $1"
		;;
	esac
}

on_again() {
	[ "$1" != encrypt ] || m_dir=${m_dir%/e}
	m_again
	[ "$1" != encrypt ] || {
		matrix_file encrypt "$m_dir" "$m_dir/e" || t_fail "no key"
		m_dir=$m_dir/e
	}
}

on_down() {
	[ "$1" != encrypt ] || m_dir=${m_dir%/e}
	m_down
}
