#!/bin/bash
# SPDX-License-Identifier: MIT
# kernels: 6.12 7 debug
# time: 60
# long-only: make check-matrix has it; make check is short
# expect-log: (EXT4-fs|JBD2|Aborting journal|Buffer I.O error|I.O error).*ublkb
# Guards what goes through cuFile to a drive that is none on PCI and has bad habits (matrix_ublk):
# its errors are reported as such and nothing beside them is wrong; and when its power goes, what
# was fsynced is there afterwards. With a drive that lies about flushes it must not be. Fails on a
# wrong byte, an error that is lost, when fsynced data is, or when the lie is not seen.
. "$(dirname "$0")/lib.sh"

PATH=$t_top/build/host/tests/matrix/ublk:$t_top/build/host/tests/matrix/cut:$PATH
export CUFILE_LOGFILE_PATH=$t_tmp/cufile.log
server=
sectors=$((96 << 11))

modprobe -q ublk_drv || t_skip "kernel $OPENGDS_KERNEL has no ublk (CONFIG_BLK_DEV_UBLK)"

# serve OPTIONS...: sets dev
serve() {
	matrix_ublk --size 96M "$@" >"$t_tmp/ublk" 2>&1 &
	server=$!
	t_wait 20 grep -q '^ready ' "$t_tmp/ublk" || t_fail "matrix_ublk: $(<"$t_tmp/ublk")"
	dev=$(sed -n 's/^ready //p' "$t_tmp/ublk")
	t_wait 10 test -b "$dev" || t_fail "no $dev"
}

# served TEXT REGEX: the drive goes; what it did must match
served() {
	kill -TERM $server
	wait $server || t_bad "$1: matrix_ublk: $(tail -n 1 "$t_tmp/ublk")"
	t_say "  $(tail -n 1 "$t_tmp/ublk")"
	t_check "$1" grep -qE "$2" "$t_tmp/ublk"
}

power() {
	kill "-$1" $server
	t_wait 20 grep -q "^power $2" "$t_tmp/ublk" || t_fail "matrix_ublk: the power does not go $2"
}

# cut TEXT right|wrong OPTIONS...: writes and fsyncs, the power goes, mounted again, compared
cut() {
	local text=$1 want=$2 got=right
	shift 2
	serve --cache "$@"
	mkfs.ext4 -q -F -E nodiscard,lazy_itable_init=0 -J size=4 "$dev" 64M || t_fail "mkfs.ext4 $dev"
	t_mount ext4 "$dev" /mnt
	t_run "$text: writes" matrix_cut run /mnt --notes "$t_tmp/notes" --device "$dev" --marks-at \
		$((sectors - 8)) --route bounce --steps 60 --seed "${T_SEED:-1}"
	power USR1 off
	umount /mnt || t_fail "umount /mnt"
	t_mounts=()
	power USR2 on
	if mount -t ext4 -o noinit_itable "$dev" /mnt 2>"$t_tmp/out"; then
		matrix_cut check /mnt --notes "$t_tmp/notes" --mark 60 >"$t_tmp/out" 2>&1 || got=wrong
		umount /mnt || t_fail "umount /mnt"
		e2fsck -fn "$dev" >"$t_tmp/fsck" 2>&1 || got=wrong
	else
		got=wrong
	fi
	sed 's/^/    /' "$t_tmp/out"
	t_check "$text: $want afterwards" test $got = "$want"
	served "$text: the cut took something" "lost [1-9]"
}

t_load
serve --bad 65536:8
t_expect "read of a bad sector" EIO "the drive failed the read" \
	nvfs_try read --file "$dev" --file-off 32M --size 64K
t_expect "write to a bad sector" EIO "the drive failed the write" \
	nvfs_try write --file "$dev" --file-off 31M --size 2M
out=$(nvfs_try write --file "$dev" --file-off 8M --size 64K --seed 3)
t_check "other ranges can be written" grep -q "^OK 65536" <<<"$out"
out=$(nvfs_try read --file "$dev" --file-off 8M --size 64K --seed 3)
t_check "and read back right" grep -q "^GPU pattern" <<<"$out"
served "its errors were seen by the drive" "failed [1-9]"

serve --hold 2000 --short 3
t_run "late and in part, write" nvfs_right write --file "$dev" --size 2M --cpu all
t_run "late and in part, read" nvfs_right read --file "$dev" --size 2M --cpu all
served "answers came in another order, and in part" "shortened [1-9].* turned [1-9]"

cut "power cut" right --hold 300
cut "power cut of a drive that lies" wrong --lie
t_unload
t_done
