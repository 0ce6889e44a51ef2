# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034,SC2154 # variables of the files that source it, and of lib.sh
# What the files of on/ share; sourced after tests/guest/lib.sh. README.md has the interface.

m_dir=/mnt/matrix
m_file=
m_opts=()

# -- defaults of what a file of on/ may define

on_needs() { :; }
on_load() { m_load; }
on_file() { :; }
on_again() { m_again; }

# -- helpers

# Kernel 7 has the kernel's own nvme driver and P2PDMA carriers, others the hooked driver.
m_load() {
	case $OPENGDS_KERNEL in
	*7) T_STOCK=y T_NVFS="carriers=p2pdma ${T_NVFS:-}" t_load ;;
	*)
		t_hook_there || t_fail "no hooked nvme driver for kernel $OPENGDS_KERNEL"
		T_NVFS="carriers=shadow ${T_NVFS:-}" t_load
		;;
	esac
}

m_drive() {
	t_wait 20 t_drive "$1" >/dev/null || t_fail "drive $1 (serial gds$1) did not appear"
	t_drive "$1"
}

# m_module NAME...: loads them; prints the first that this kernel lacks
m_module() {
	local m
	for m in "$@"; do
		modprobe -q "$m" 2>/dev/null && continue
		echo "kernel $OPENGDS_KERNEL has no module $m"
		return 0
	done
}

# m_tool PROGRAM PACKAGE: tools are installed by tools/setup, so a missing one is a fault
m_tool() { command -v "$1" >/dev/null || t_fail "$1 is missing: run 'make setup' (package $2)"; }

# m_mount TYPE WHAT: on m_dir, with M_OPTS; remembered for m_again
m_mount() {
	mkdir -p "$m_dir"
	m_mounted=("$1" "$2" "${M_OPTS:-defaults}")
	mount -t "$1" -o "${m_mounted[2]}" "$2" "$m_dir" ||
		t_fail "mount -t $1 -o ${m_mounted[2]} $2: $(dmesg | tail -n 2)"
}

# m_fs TYPE DEVICE [OPTION...]: a fresh file system, mounted on m_dir
m_fs() {
	local type=$1 dev=$2
	shift 2
	m_is_device "$dev"
	case $type in
	ext4)
		# of so small a one the blocks would have 1 KiB
		mkfs.ext4 -q -F -E nodiscard,lazy_itable_init=1 -b 4096 -J size=8 "$@" "$dev" 256M
		M_OPTS=noinit_itable${M_OPTS:+,$M_OPTS}
		;;
	xfs) mkfs.xfs -q -f -K "$@" "$dev" ;;
	btrfs) mkfs.btrfs -q -f -K "$@" "$dev" ;;
	f2fs) mkfs.f2fs -q -f -t 0 "$@" "$dev" ;;
	vfat) mkfs.vfat "$@" "$dev" ;;
	exfat) mkfs.exfat "$@" "$dev" ;;
	*) t_fail "m_fs: unknown type $type" ;;
	esac >"$t_tmp/mkfs" 2>&1 || t_fail "mkfs.$type $* $dev: $(tail -n 2 "$t_tmp/mkfs")"
	m_mount "$type" "$dev"
}

# m_is_device DEVICE: what m_drive said instead, in a shell of its own, ends the variant here
m_is_device() { [ -b "$1" ] || t_fail "no block device: $1"; }

# m_device DEVICE: the variant is the device itself. The kernel punches holes only into one that can
# have blocks zeroed below it.
m_device() {
	m_is_device "$1"
	m_file=$1
	[ "$(cat "/sys/class/block/${1##*/}/queue/write_zeroes_max_bytes")" != 0 ] || m_opts=(--lacks punch)
}

m_again() {
	umount "$m_dir" || t_fail "umount $m_dir: $(fuser -vm "$m_dir" 2>&1 | tail -n 3)"
	M_OPTS=${m_mounted[2]} m_mount "${m_mounted[0]}" "${m_mounted[1]}"
}

m_down() {
	umount "$m_dir" || t_fail "umount $m_dir"
}

# After a failure: what is mounted there goes, whatever uses it
m_clean() {
	while mountpoint -q "$m_dir"; do umount -l "$m_dir" || break; done
}
