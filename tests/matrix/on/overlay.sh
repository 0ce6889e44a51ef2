# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034,SC2154 # sourced by guest
# overlayfs over ext4: both layers on one drive; on two; a file that is only in the lower one and is
# copied up when it is opened for writing.

on_variants() { printf '%s\n' one two copyup; }
on_needs() { m_module overlay; }

over() {
	mount -t overlay -o "lowerdir=$low,upperdir=$up/upper,workdir=$up/work" overlay "$m_dir" ||
		t_fail "mount of the overlay: $(dmesg | tail -n 2)"
}

on_up() {
	local top=$m_dir
	up=$t_tmp/over.up low=$t_tmp/over.low
	mkdir -p "$top" "$up" "$low"
	m_dir=$up
	m_fs ext4 "$(m_drive 0)"
	mkdir "$up/upper" "$up/work" "$up/lower"
	if [ "$1" = two ]; then
		m_dir=$low
		M_OPTS='' m_fs ext4 "$(m_drive 1)"
	else
		low=$up/lower
	fi
	m_dir=$top
	over
	[ "$1" != copyup ] || m_opts=(--made 5)
}

on_file() {
	[ "$2" != copyup ] || {
		umount "$m_dir"
		matrix_file make "$low/${1##*/}" 1000000 5 || t_fail "no file in the lower layer"
		over
	}
}

on_again() {
	umount "$m_dir" || t_fail "umount $m_dir"
	echo 3 >/proc/sys/vm/drop_caches
	over
}

on_down() {
	umount "$m_dir" || t_fail "umount $m_dir"
	[ "$1" != two ] || umount "$low" || t_fail "umount $low"
	umount "$up" || t_fail "umount $up"
}
