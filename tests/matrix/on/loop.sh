# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034,SC2154 # sourced by guest; its variables
# vm: --nvme 3
# A loop device over a drive; ext4 on it, or the device itself.

loop_dev=

on_variants() { printf '%s\n' ext4 dev direct; }
on_needs() { m_module loop; }

on_up() {
	local opt=()
	# the device below without its page cache
	[ "$1" != direct ] || opt=(--direct-io=on)
	loop_dev=$(losetup -f --show "${opt[@]}" "$(m_drive 0)") || t_fail "losetup: no loop device"
	if [ "$1" = dev ]; then
		m_device "$loop_dev"
	else
		m_fs ext4 "$loop_dev"
	fi
}

on_again() {
	if [ -n "$m_file" ]; then blockdev --flushbufs "$m_file"; else m_again; fi
}

on_down() {
	[ -n "$m_file" ] || m_down
	losetup -d "$loop_dev" || t_fail "losetup -d $loop_dev"
}
