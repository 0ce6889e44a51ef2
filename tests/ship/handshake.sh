# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
# The packages' module and library in the guest, new and old in all pairs, as upgrades leave them; and
# the packaged tools on what DKMS built. tests/ship/handshake-guest has the checks.

# module NAME SOURCE: builds nvidia-fs.ko of a folder below /usr/src, as DKMS does
module() {
	local name=$1 src=$2 dir=$root/tmp/$1
	rm -rf "$dir"
	cp -r "$src" "$dir"
	in_root sh -c "cd /tmp/$name && sh ./dkms-build nvidia-fs '$k612' '/lib/modules/$k612/build'" || return
	mkdir -p "$work/guest/$name"
	strip --strip-debug -o "$work/guest/$name/nvidia-fs.ko" "$dir/kernel/nvidia-fs/nvidia-fs.ko"
}

handshake_files() {
	local f
	rm -rf "$work/guest"
	mkdir -p "$work/guest"/{lib-new,lib-old,sim}
	dpkg-deb -x "$work"/debs/opengds-libcufile0_"$version"_*.deb "$work/guest/x" &&
		cp -a "$work/guest/x"/usr/lib/*/libcufile.so.* "$work/guest/lib-new/" &&
		dpkg-deb -x "$work"/debs/opengds-libcufile0_"$old_version"_*.deb "$work/guest/y" &&
		cp -a "$work/guest/y"/usr/lib/*/libcufile.so.* "$work/guest/lib-old/" &&
		dpkg-deb -x "$work"/debs/opengds-gpu-sim_"$version"_*.deb "$work/guest/sim" &&
		dpkg-deb -x "$work"/debs/opengds-tools_"$version"_*.deb "$work/guest/sim" &&
		dpkg-deb -x "$work"/debs/opengds-nvidia-fs-dkms_"$old_version"_*.deb "$work/guest/old-src" || return
	gcc -D_GNU_SOURCE -o "$work/guest/hello" examples/hello_gds.c -Iinclude -Isim/include \
		-L"$work/guest/lib-new" -l:libcufile.so.0 -L"$(dirname "$(find "$work/guest/sim" -name libcudart.so)")" \
		-lcudart -Wl,--allow-shlib-undefined || return
	# what DKMS built
	f=$(module_file nvme "$k612") || return
	[[ $f = */updates/* ]] || { echo "the driver of $k612 is $f"; return 1; }
	mkdir -p "$work/guest/new"
	plain_module "$f" "$work/guest/nvme.ko" || return
	f=$(module_file nvidia-fs "$k612") && plain_module "$f" "$work/guest/new/nvidia-fs.ko" || return
	f=$work/guest/old-src/usr/src/opengds-nvidia-fs-$old_version
	module old "$f" || return
	# older than what any library of ours takes
	sed -i 's/MINOR 24/MINOR 11/; s/2\.24\.1/2.11.0/' "$f/kernel/nvidia-fs/nvidia-fs.h"
	module ancient "$f" || return
	vm/kernels/build 6.12 && cp build/6.12/gpu-sim.ko "$work/guest/"
	rm -rf "$work/guest"/{x,y,old-src}
}

handshake_boot() {
	[ "$(cat "$(vm/kernels/kernel 6.12)/release")" = "$k612" ] || { echo "vm/run's 6.12 is another one than $k612"; return 1; }
	vm/run --kernel 6.12 --vram 512M --out "$work/guest/vm" -- bash tests/ship/handshake-guest "$work/guest" \
		>"$work/out/handshake.log" 2>&1
	local rc=$?
	cat "$work/out/handshake.log"
	return $rc
}

have_handshake() { kernels && [ "$work/guest/.done" -nt "$work/dkms/.done" ]; }

part_handshake() {
	kernels && new_root dkms || return
	check handshake-files handshake_files || return
	touch "$work/guest/.done"
	check handshake-guest handshake_boot
	guest_lines HANDSHAKE handshake "$work/out/handshake.log"
}
