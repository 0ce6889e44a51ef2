# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034,SC2154
# Shared by prepare and make-patch. Source it; needs vm/lib.sh.

hook=$top/kernel/nvme-hook
# which kernels a set is for is decided by trying: no version is looked at
sets='pci-sg.edits pci-iter.edits'

# sets $patchkit: a program made of the sources as they are now, kept in the cache
make_patchkit() {
	local dir
	patchkit=${PATCHKIT:-}
	[ -z "$patchkit" ] || return 0
	need cc build-essential
	dir=$cache/patchkit/$(key "$top"/patchkit/*.[ch])
	patchkit=$dir/patchkit
	[ -x "$patchkit" ] && return 0
	mkdir -p "$dir"
	cc -std=c11 -O1 -o "$patchkit.$$" "$top"/patchkit/*.c || die "patchkit does not build"
	mv "$patchkit.$$" "$patchkit"
}

# choose_set ROOT: sets $set to the edit set that fits the sources in ROOT (a copy of
# drivers/nvme/host); returns 3 with the refusals in $why if none does
choose_set() {
	local s rc=0 out
	why=
	for s in $sets; do
		out=$("$patchkit" plan "$hook/$s" "$1" 2>&1 >/dev/null) && rc=0 || rc=$?
		set=$hook/$s
		case $rc in
		0) return 0 ;;
		3) why="${why:+$why; }$s: $out" ;;
		*) die "patchkit failed: $out" ;;
		esac
	done
	return 3
}
