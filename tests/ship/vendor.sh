# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
# Beside the vendor's: packages with its names and paths, made here, and files of a runfile.

# vendor_deb NAME VERSION DEPENDS FILE...: a package that looks like one of the vendor's
vendor_deb() {
	local name=$1 v=$2 dep=$3 dir=$work/vendor/$1 f
	shift 3
	rm -rf "$dir"
	mkdir -p "$dir/DEBIAN"
	printf 'Package: %s\nVersion: %s\nArchitecture: amd64\nMaintainer: test <t@example.org>\n%sDescription: stand-in\n' \
		"$name" "$v" "${dep:+Depends: $dep
}" >"$dir/DEBIAN/control"
	for f in "$@"; do
		mkdir -p "$dir/${f%/*}"
		echo "vendor $name" >"$dir/$f"
	done
	dpkg-deb --root-owner-group -b "$dir" "$root/debs/$name.deb" >/dev/null
}

vendor_installed() {
	vendor_deb libcufile-12-8 1.13.1.3-1 '' \
		usr/local/cuda-12.8/targets/x86_64-linux/lib/libcufile.so.0 &&
		vendor_deb gds-tools-12-8 1.13.1.3-1 'libcufile-12-8' usr/local/cuda-12.8/gds/tools/gdscheck &&
		vendor_deb cuda-libraries-12-8 12.8.1-1 'libcufile-12-8 (>= 1.13.1.3)' usr/local/cuda-12.8/lib64/x &&
		vendor_deb nvidia-fs-dkms 2.24.2-1 '' usr/src/nvidia-fs-2.24.2/dkms.conf || return
	in_root dpkg -i /debs/libcufile-12-8.deb /debs/gds-tools-12-8.deb \
		/debs/cuda-libraries-12-8.deb /debs/nvidia-fs-dkms.deb || return
	in_root update-alternatives --install /usr/local/cuda cuda /usr/local/cuda-12.8 128
}

state() { in_root dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null || echo none; }

# never two libraries of one name: dpkg takes the vendor's away, and what depends on it stays
not_both() {
	in_root sh -c "dpkg -i $(debs opengds-libcufile0)" || return
	[ "$(state libcufile-12-8)" != installed ] && [ "$(state cuda-libraries-12-8)" = installed ] &&
		[ ! -e "$root/usr/local/cuda-12.8/targets/x86_64-linux/lib/libcufile.so.0" ] &&
		in_root apt-get -q check
}

# apt does the same with the others
replaced() {
	install_debs opengds-libcufile0 opengds-tools opengds-nvidia-fs-dkms || return
	[ "$(state cuda-libraries-12-8)" = installed ] || { echo 'cuda-libraries-12-8 went, too'; return 1; }
	local p
	for p in libcufile-12-8 gds-tools-12-8 nvidia-fs-dkms; do
		[ "$(state "$p")" != installed ] || { echo "$p is there still"; return 1; }
	done
	in_root apt-get -q check && [ -L "$root/usr/local/cuda-12.8/gds/tools/gdscheck" ] &&
		[ "$(in_root readlink /etc/alternatives/cuda)" = /usr/local/cuda-12.8 ]
}

# files of a runfile, which no package owns, stay as they are
runfile() {
	rm "$root/usr/local/cuda-12.8/gds/tools/gdsio"
	echo mine >"$root/usr/local/cuda-12.8/gds/tools/gdsio"
	in_root dpkg-reconfigure opengds-tools || return
	[ "$(cat "$root/usr/local/cuda-12.8/gds/tools/gdsio")" = mine ] || return 1
	in_root apt-get -q -y purge opengds-tools || return
	[ "$(cat "$root/usr/local/cuda-12.8/gds/tools/gdsio")" = mine ] &&
		[ "$(find "$root/usr/local/cuda-12.8/gds" -type l | wc -l)" = 0 ]
}

# a toolkit that comes later: the trigger makes the links
later() {
	install_debs opengds-tools || return
	vendor_deb cuda-toolkit-13-0 13.0.1-1 '' usr/local/cuda-13.0/lib64/x || return
	in_root dpkg -i /debs/cuda-toolkit-13-0.deb || return
	[ -L "$root/usr/local/cuda-13.0/gds/tools/gdsio" ] || { echo 'no link in the new toolkit'; return 1; }
	in_root apt-get -q -y purge opengds-tools cuda-toolkit-13-0 || return
	[ ! -e "$root/usr/local/cuda-13.0" ] || { find "$root/usr/local/cuda-13.0"; return 1; }
}

# and back: the vendor's packages replace ours
back() {
	in_root apt-get -q -y --no-install-recommends install ./debs/libcufile-12-8.deb || return
	[ "$(state opengds-libcufile0)" != installed ] && [ "$(state libcufile-12-8)" = installed ]
}

part_vendor() {
	new_root big || return
	# what DKMS builds is looked at elsewhere
	mkdir -p "$root/etc/dkms"
	: >"$root/etc/dkms/no-autoinstall"
	check vendor-stand-ins vendor_installed || return
	check vendor-never-both not_both
	check vendor-replaced replaced
	check vendor-files-stay runfile
	check vendor-toolkit-later later
	check vendor-comes-back back
}
