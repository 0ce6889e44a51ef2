# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034,SC2154 # sourced by guest; its variables
# vm: --nvme 3
# Device mapper over the drives, by dmsetup. NAME: ext4 on it; NAME-dev: the device itself.

dm_made=()

on_variants() {
	printf '%s\n' linear stripe crypt thin snapshot linear-dev stripe-dev crypt-dev thin-dev \
		snapshot-dev
}

on_needs() {
	case ${1%-dev} in
	crypt) m_module dm-mod dm-crypt ;;
	thin) m_module dm-mod dm-thin-pool ;;
	snapshot) m_module dm-mod dm-snapshot ;;
	*) m_module dm-mod ;;
	esac
}

# dm_make NAME TABLE: sets dm_dev; nobody makes links in /dev/mapper here
dm_make() {
	m_tool dmsetup dmsetup
	dmsetup create --noudevsync "$1" --table "$2" || t_fail "dmsetup create $1: $2"
	dm_made=("$1" "${dm_made[@]}")
	dm_dev=/dev/$(dmsetup info -c --noheadings -o blkdevname "$1")
	t_wait 10 test -b "$dm_dev" || t_fail "no $dm_dev"
}

# zeros DEVICE: its first MiB, where metadata of an earlier variant may be
zeros() { dd if=/dev/zero of="$1" bs=1M count=1 oflag=direct status=none || t_fail "dd to $1"; }

on_up() {
	local a b sectors=$((512 << 11)) key pool cow
	a=$(m_drive 0) b=$(m_drive 1)
	case ${1%-dev} in
	linear) dm_make m_linear "0 $sectors linear $a 2048" ;;
	stripe) dm_make m_stripe "0 $sectors striped 2 128 $a 0 $b 0" ;;
	crypt)
		key=00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff
		dm_make m_crypt "0 $sectors crypt aes-xts-plain64 $key 0 $a 0"
		;;
	thin)
		dm_make m_meta "0 $((32 << 11)) linear $b 0"
		pool=$dm_dev
		zeros "$pool"
		dm_make m_pool "0 $((2 * sectors)) thin-pool $pool $a 128 0"
		dmsetup message m_pool 0 "create_thin 0" || t_fail "dmsetup message: create_thin"
		dm_make m_thin "0 $sectors thin $dm_dev 0"
		;;
	snapshot)
		dm_make m_cow "0 $sectors linear $b 0"
		cow=$dm_dev
		zeros "$cow"
		dm_make m_snap "0 $sectors snapshot $a $cow P 16"
		;;
	esac
	if [ "$1" != "${1%-dev}" ]; then
		m_device "$dm_dev"
	else
		m_fs ext4 "$dm_dev"
	fi
}

on_again() {
	if [ -n "$m_file" ]; then blockdev --flushbufs "$m_file"; else m_again; fi
}

on_down() {
	local d
	[ -n "$m_file" ] || m_down
	for d in "${dm_made[@]}"; do
		dmsetup remove --noudevsync --retry "$d" || t_fail "dmsetup remove $d"
	done
}
