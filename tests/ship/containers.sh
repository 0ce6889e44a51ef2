# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
# podman in the guest: an image of the fresh Debian with our packages, two nodes, no privileges.

container_image() {
	new_root base || return
	install_debs opengds-libcufile0 opengds-gpu-sim || return
	cp "$work/guest/hello" "$root/usr/local/bin/hello" &&
		(cd "$root" && tar --one-file-system --exclude=./debs --exclude=./var/cache \
			--exclude=./var/lib/apt --exclude=./usr/share/doc \
			--exclude=./usr/share/locale --exclude=./usr/share/man -cf "$work/image.tar" .) || return
	echo "note: $(du -m "$work/image.tar" | cut -f1) MiB"
}

container_boot() {
	vm/run --kernel 6.12 --vram 512M --mem 2G --timeout 900 --nvme 2 --out "$work/guest/vm2" -- \
		bash tests/ship/containers-guest "$work/guest" "$work/image.tar" >"$work/out/containers.log" 2>&1
	local rc=$?
	cat "$work/out/containers.log"
	return $rc
}

part_containers() {
	check container-image container_image || return
	check container-guest container_boot
	guest_lines CONTAINER container "$work/out/containers.log"
	rm -f "$work/image.tar"
}
