# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034,SC2154 # sourced by guest; its variables
# vm: --nvme 3
# md arrays over whole drives, without a superblock, by sysfs: no mdadm, no metadata that a later
# variant could find. NAME: ext4 on it; NAME-dev: the array itself.

md_name=

on_variants() {
	printf '%s\n' raid0 raid1 raid5 raid10 raid0-dev raid1-dev raid5-dev raid10-dev
}

on_needs() {
	local level=${1%-dev}
	[ "$level" != raid5 ] || level=raid456
	m_module md-mod "$level"
}

# The array of an earlier variant with this name goes some time after it was told to.
md_new() { echo "$md_name" 2>/dev/null >/sys/module/md_mod/parameters/new_array; }

# md_set FILE VALUE: of the array
md_set() { echo "$2" >"/sys/block/$md_name/md/$1" || t_fail "md: $1: $2"; }

on_up() {
	local level=${1%-dev} disks=2 n drive
	[ "$level" != raid5 ] || disks=3
	# on Linux 7 the array of an earlier variant may keep its name
	md_name=md_${1//-/_}
	t_wait 20 md_new || t_fail "md: no new array $md_name"
	md_set metadata_version none
	md_set level "$level"
	md_set raid_disks $disks
	[ "$level" = raid1 ] || md_set chunk_size $((64 << 10))
	case $level in
	raid5) md_set layout 2 ;;
	raid10) md_set layout $((0x102)) ;;
	esac
	[ "$level" = raid0 ] || md_set component_size $((512 << 10))
	for ((n = 0; n < disks; n++)); do
		drive=$(m_drive $n)
		md_set new_dev "$(cat "/sys/block/${drive##*/}/dev")"
		md_set "dev-${drive##*/}/size" $((512 << 10))
		md_set "dev-${drive##*/}/slot" $n
	done
	[ "$level" = raid0 ] || md_set resync_start none
	md_set array_state active
	t_wait 10 test -b "/dev/$md_name" || t_fail "no /dev/$md_name"
	if [ "$1" != "$level" ]; then
		m_device "/dev/$md_name"
	else
		m_fs ext4 "/dev/$md_name"
	fi
}

on_again() {
	if [ -n "$m_file" ]; then blockdev --flushbufs "$m_file"; else m_again; fi
}

on_down() {
	[ -n "$m_file" ] || m_down
	md_set array_state clear
}
