# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034,SC2154 # sourced by guest
# FUSE over ext4, by a server of our own: through the page cache, without it, and with reads and
# writes that the kernel passes to the file below.

on_variants() { printf '%s\n' plain direct-io passthrough; }

on_needs() {
	local status=0
	m_module fuse
	[ "$1" = passthrough ] || return 0
	mkdir -p "$m_dir" "$t_tmp/none"
	matrix_fuse --passthrough "$m_dir" "$t_tmp/none" || status=$?
	umount "$m_dir"
	[ $status != 77 ] || echo "kernel $OPENGDS_KERNEL has no CONFIG_FUSE_PASSTHROUGH"
}

serve() {
	local -a how=()
	[ "$1" = plain ] || how=("--$1")
	matrix_fuse "${how[@]}" "$m_dir" "$under/files" || t_fail "matrix_fuse ${how[*]}: status $?"
}

on_up() {
	local top=$m_dir
	under=$t_tmp/under
	mkdir -p "$top" "$under"
	m_dir=$under
	m_fs ext4 "$(m_drive 0)"
	m_dir=$top
	mkdir "$under/files"
	serve "$1"
	# a file that is opened without the page cache has no shared mapping, and reads pin
	[ "$1" != direct-io ] || m_opts=(--lacks mmap --pins)
}

on_again() {
	umount "$m_dir" || t_fail "umount $m_dir"
	echo 3 >/proc/sys/vm/drop_caches
	serve "$1"
}

on_down() {
	umount "$m_dir" || t_fail "umount $m_dir"
	umount "$under" || t_fail "umount $under"
}
