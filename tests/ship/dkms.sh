# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
# Both modules by DKMS, in the fresh Debian, for its kernels 6.1 and 6.12. What is built stays in a
# layer of its own, on which boot and handshake work; so does purge, at the end.

dkms_install() {
	snapshot "$work/before"
	install_debs opengds-nvidia-fs-dkms opengds-nvme-hook-dkms
}

nvidia_fs_for() {
	local k=$1 f
	in_root dkms autoinstall -k "$k" || return
	f=$(module_file nvidia-fs "$k") || return
	[[ $f = */updates/dkms/nvidia-fs.ko* ]] || { echo "nvidia-fs of $k is $f"; return 1; }
	[ "$(in_root modinfo -k "$k" -F version nvidia-fs)" = 2.28.4 ] || return 1
	in_root modinfo -k "$k" -F vermagic nvidia-fs | grep -q "^$k " || return 1
	# DKMS's own key, made when it first signs
	in_root modinfo -k "$k" -F signer nvidia-fs | grep -q 'DKMS' || { echo 'it is not signed'; return 1; }
	echo "note: ${f##*/}"
}

# compressed as that kernel's own modules are
compressed_as() {
	local k=$1 own ours
	own=$(module_file ext4 "$k") ours=$(module_file nvidia-fs "$k")
	[ "${own##*.}" = "${ours##*.}" ] || { echo "$own, but $ours"; return 1; }
	echo "note: .${ours##*.}"
}

softdep() {
	in_root modprobe -c -S "$k612" >"$work/out/modprobe" && has "$work/out/modprobe" '^softdep nvidia[_-]fs pre: nvidia$'
}

# what the package of a kernel's headers runs
kernel_scripts() { in_root run-parts --exit-on-error --arg="$1" /etc/kernel/header_postinst.d; }

# without the source of the kernel there is no hooked driver, and no error
no_source() {
	{ in_root dkms autoinstall -k "$k612" && kernel_scripts "$k612"; } >"$work/out/no-source.log" 2>&1 || {
		cat "$work/out/no-source.log"
		return 1
	}
	has "$work/out/no-source.log" "opengds-nvme-hook fetch ${k612//+/\\+}" || return
	[[ $(module_file nvme "$k612") = */kernel/drivers/nvme/host/nvme.ko* ]] || return
	# for the part boot
	cp "$root/boot/initrd.img-$k612" "$work/initrd.no-source"
}

# 6.1: the distribution's package; 6.12: the one command
with_package() {
	in_root apt-get -q -y --no-install-recommends install linux-source-6.1 &&
		kernel_scripts "$k61" || return
	in_root modinfo -F nvfs "/lib/modules/$k61/updates/dkms/nvme.ko" | grep -qx v1
}
with_fetch() {
	in_root opengds-nvme-hook fetch "$k612" || return
	[[ $(module_file nvme "$k612") = */updates/dkms/nvme.ko* ]] || return 1
	[ "$(in_root modinfo -k "$k612" -F nvfs nvme)" = v1 ] || return 1
	in_root opengds-nvme-hook status | grep "^$k612: hooked (v1)"
}

# a package of headers that changed under the same name: what was kept is of another kernel
stale() {
	local f=$root/var/lib/opengds-nvme-hook/$k612/version keep rc=0
	keep=$(cat "$f")
	echo 1.2.3-4 >"$f"
	in_root sh "/usr/src/opengds-nvme-hook-$version/find-source" --check "$k612" && rc=1
	echo "$keep" >"$f"
	return $rc
}

initramfs() {
	in_root lsinitramfs "/boot/initrd.img-$k612" >"$work/out/initramfs.list" || return
	has "$work/out/initramfs.list" 'updates/dkms/nvme\.ko' &&
		has "$work/out/initramfs.list" 'lib/opengds/nvme-stock/nvme\.ko$' &&
		has "$work/out/initramfs.list" 'lib/opengds/load-nvme$'
}

# another release in its place: DKMS builds for the newest kernel alone
another_release() {
	local k
	OLD=1 install_debs opengds-nvme-hook-dkms || return
	for k in "$k61" "$k612"; do
		[ "$(in_root modinfo -k "$k" -F nvfs nvme)" = v1 ] || { echo "$k has lost the hook"; return 1; }
	done
	in_root dkms status | grep "opengds-nvme-hook/$old_version"
}

# everything as it was before the packages came
dkms_purge() {
	in_root apt-get -q -y purge opengds-nvidia-fs-dkms opengds-nvme-hook-dkms || return
	in_root apt-get -q -y purge linux-source-6.1 &&
		in_root apt-get -q -y autoremove --purge || return
	snapshot "$work/after"
	# depmod writes these anew
	grep -v '/modules\.' "$work/before" >"$work/before.m"
	grep -vE '/modules\.' "$work/after" >"$work/after.m"
	same "$work/before.m" "$work/after.m" || return
	in_root lsinitramfs "/boot/initrd.img-$k612" >"$work/out/initramfs.list"
	hasnt "$work/out/initramfs.list" 'opengds|updates/dkms'
}

have_dkms() { kernels && [ "$work/dkms/.done" -nt "$roots/big/.done" ]; }

part_dkms() {
	kernels && rm -f "$work/dkms/.done" && new_root big "$work/dkms" || return
	check dkms-packages-install dkms_install || return
	check dkms-6.1 nvidia_fs_for "$k61"
	check dkms-6.12 nvidia_fs_for "$k612"
	check dkms-6.12-compressed-as-its-own compressed_as "$k612"
	check dkms-loads-after-nvidia softdep
	check hook-without-source-is-no-error no_source
	check hook-6.1-linux-source with_package
	check hook-6.12-fetch with_fetch
	check hook-stale-source-refused stale
	check hook-in-initramfs initramfs
	touch "$work/dkms/.done"
	new_root dkms && check hook-upgrade-keeps-all-kernels another_release
	new_root dkms && check dkms-purge-leaves-nothing dkms_purge
}
