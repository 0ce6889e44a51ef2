# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034,SC2154
# The roots that the other parts work in: a fresh Debian, and one with the headers of its kernels.

headers_of() {	# SUITE: the headers package that the metapackage names
	"$top/vm/kernels/apt" cache show "linux-headers-amd64/$1" |
		sed -n 's/^Depends: \(linux-headers-[^ ,]*\).*/\1/p' | head -n 1
}

# the kernels, 6.1 and 6.12; their names are needed by whoever works in the roots
kernels() {
	[ -z "${k612:-}" ] || return 0
	vm/kernels/apt update || { echo 'the package lists could not be fetched'; return 1; }
	headers61=$(headers_of bookworm) headers612=$(headers_of bookworm-backports)
	[ -n "$headers61" ] && [ -n "$headers612" ] ||
		{ echo 'apt knows no linux-headers-amd64 of bookworm and bookworm-backports'; return 1; }
	k61=${headers61#linux-headers-} k612=${headers612#linux-headers-}
}

make_base() {
	fresh "$roots/base" make_base && return 0
	local proxy opt=()
	proxy=$(apt-config shell p Acquire::http::Proxy | sed "s/^p='\(.*\)'$/\1/")
	[ -z "$proxy" ] || opt=(--aptopt="Acquire::http::Proxy \"$proxy\"")
	rm -rf "$roots/base" "$roots/big"
	mkdir -p "$roots/base"
	sources >"$work/sources.list"
	mmdebstrap --variant=minbase --mode=root "${opt[@]}" --skip=cleanup/apt/lists \
		"$suite" "$roots/base/root" - <"$work/sources.list" &&
		cp /etc/resolv.conf /etc/hosts "$roots/base/root/etc/" && made "$roots/base" make_base
}

make_big() {
	fresh "$roots/big" make_big && return 0
	rm -rf "$roots/big"
	mount_root "$roots/base/root" "$roots/big" || return 1
	# no daemon is started, no service file is looked for
	printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
	chmod +x "$root/usr/sbin/policy-rc.d"
	in_root apt-get -q -y --no-install-recommends install dkms openssl gcc libc6-dev make \
		pkg-config python3 initramfs-tools busybox logrotate kmod zstd xz-utils dpkg-dev \
		"$headers61" "$headers612" "linux-image-${headers612#linux-headers-}" || return 1
	in_root apt-get clean
	unmount_root
	made "$roots/big" make_big
}

have_roots() { kernels && fresh "$roots/base" make_base && fresh "$roots/big" make_big; }

part_roots() {
	kernels || { fail=$((fail + 1)); say_result FAIL kernels 'apt names none'; return 1; }
	check fresh-debian with_lock ship-roots make_base &&
		check fresh-debian-with-headers with_lock ship-roots make_big || return
	say_result kernels "$k61, $k612" ''
}
