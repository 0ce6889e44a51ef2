# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034,SC2154 # sourced by guest
# squashfs: read-only, compressed, without O_DIRECT. All cells have the one file.

on_variants() { echo plain; }
on_needs() { m_module squashfs; }

on_up() {
	local drive
	m_tool mksquashfs squashfs-tools
	drive=$(m_drive 0)
	rm -rf "$t_tmp/squash"
	mkdir "$t_tmp/squash"
	matrix_file make "$t_tmp/squash/f" 1500000 5 --soft || t_fail "no file"
	mksquashfs "$t_tmp/squash" "$t_tmp/squash.img" -quiet -no-progress -noappend >/dev/null ||
		t_fail mksquashfs
	dd if="$t_tmp/squash.img" of="$drive" bs=1M conv=fsync status=none || t_fail "dd to $drive"
	m_mount squashfs "$drive"
	m_file=$m_dir/f
	m_opts=(--made 5 --soft --read-only --lacks direct)
}

on_down() {
	m_down
	wipefs -qa "$(m_drive 0)"
}
