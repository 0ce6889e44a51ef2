# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034,SC2154 # sourced by guest; its variables
# vm: --drive shared:size=2G
# A namespace that two controllers reach, by the kernel's native multipath: ext4, or itself.

on_variants() { printf '%s\n' ext4 dev; }

on_needs() {
	[ "$(cat /sys/module/nvme_core/parameters/multipath 2>/dev/null)" = Y ] ||
		echo "kernel $OPENGDS_KERNEL has no native NVMe multipath"
}

on_up() {
	local dev
	dev=$(m_drive 0)
	[ "$(find /sys/class/nvme/ -mindepth 1 | wc -l)" = 2 ] || t_fail "not two controllers"
	if [ "$1" = dev ]; then
		m_device "$dev"
	else
		m_fs ext4 "$dev"
	fi
}

on_again() {
	if [ -n "$m_file" ]; then blockdev --flushbufs "$m_file"; else m_again; fi
}
on_down() { [ -n "$m_file" ] || m_down; }
