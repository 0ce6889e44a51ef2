# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034,SC2154 # sourced by guest; its variables
# vm: --nvme 3
# Drives of matrix_ublk: one that behaves, one that answers late and in another order and does
# requests in part, one with a volatile cache. ext4 on it; -dev: the device itself.

ublk_pid=

on_variants() { printf '%s\n' plain late cache plain-dev late-dev; }
on_needs() { m_module ublk_drv; }

on_up() {
	local dev opt=()
	case ${1%-dev} in
	late) opt=(--hold 3000 --short 5) ;;
	cache) opt=(--cache --hold 1000) ;;
	esac
	"$t_top/build/host/tests/matrix/ublk/matrix_ublk" --size 512M --seed "${seed:-1}" \
		"${opt[@]}" >"$t_tmp/ublk" 2>&1 &
	ublk_pid=$!
	t_wait 20 grep -q '^ready ' "$t_tmp/ublk" || t_fail "matrix_ublk: $(<"$t_tmp/ublk")"
	dev=$(sed -n 's/^ready //p' "$t_tmp/ublk")
	t_wait 10 test -b "$dev" || t_fail "no $dev"
	if [ "$1" != "${1%-dev}" ]; then
		m_device "$dev"
	else
		m_fs ext4 "$dev"
	fi
}

on_again() {
	if [ -n "$m_file" ]; then blockdev --flushbufs "$m_file"; else m_again; fi
}

on_down() {
	[ -n "$m_file" ] || m_down
	kill -TERM "$ublk_pid" && wait "$ublk_pid" || t_fail "matrix_ublk: $(tail -n 2 "$t_tmp/ublk")"
	t_say "$(tail -n 1 "$t_tmp/ublk")"
}
