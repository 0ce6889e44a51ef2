# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
# The fresh Debian as the root disk of a virtual machine: an emulated NVMe drive, its own kernel and
# initramfs. With the hooked driver, with one that is broken on purpose, and with it turned off.

# what the machine runs instead of init: tells which driver has the root disk
boot_image() {
	cat >"$root/ship-init" <<'END'
#!/bin/sh
mount -t proc proc /proc 2>/dev/null
mount -t sysfs sys /sys 2>/dev/null
exec >/dev/ttyS0 2>&1
echo "ship: root $(findmnt -n -o SOURCE /)"
if [ -e /sys/module/nvme/parameters/nvfs_requests ]; then
	echo 'ship: nvme hooked'
else
	echo 'ship: nvme stock'
fi
dmesg | sed -n 's/.*\(opengds: nvme: .*\)/ship: \1/p'
echo 'ship: done'
sync
echo o >/proc/sysrq-trigger
sleep 60
END
	chmod +x "$root/ship-init"
	rm -rf "$work/disk" "$work/disk.img"
	mkdir -p "$work/disk"
	# what a boot has no use for
	(cd "$root" && tar -cf - --one-file-system --exclude=./debs --exclude='./usr/src/*' --exclude=./var/cache \
		--exclude=./var/lib/apt --exclude='./usr/lib/gcc' --exclude='./usr/share/doc' \
		--exclude='./usr/share/locale' --exclude="./usr/lib/modules/$k61" .) | tar -xf - -C "$work/disk" || return
	truncate -s 2G "$work/disk.img"
	mke2fs -q -t ext4 -d "$work/disk" "$work/disk.img" && rm -rf "$work/disk" "$root/ship-init"
}

# start NAME [PARAMETERS]: boots it, and leaves what the console said in $work/out/NAME.console
start() {
	local console=$work/out/$1.console
	rm -f "$console"
	timeout -k 5 400 qemu-system-x86_64 -accel "$accel" -M q35 -cpu EPYC -smp 2 -m 1G -nodefaults \
		-display none -no-reboot -kernel "$root/boot/vmlinuz-$k612" -initrd "$root/boot/initrd.img-$k612" \
		-append "root=/dev/nvme0n1 ro console=ttyS0 panic=-1 oops=panic no_timer_check init=/ship-init ${2:-}" \
		-drive "file=$work/disk.img,if=none,id=d,format=raw,cache=unsafe" -device nvme,serial=ship,drive=d \
		-serial "file:$console" || { tail -n 30 "$console"; return 1; }
	tr -d '\r' <"$console" >"$console.txt"
	grep 'ship: ' "$console.txt"
	has "$console.txt" 'ship: root /dev/nvme0n1' && has "$console.txt" 'ship: done'
}

boot_hooked() {
	start hooked && has "$work/out/hooked.console.txt" 'ship: nvme hooked'
}
boot_parameter() {
	start parameter opengds.nvme=stock && has "$work/out/parameter.console.txt" 'ship: nvme stock' &&
		has "$work/out/parameter.console.txt" 'ship: opengds: nvme: .*opengds\.nvme=stock'
}

# broken: what lies in its place is a module of the other kernel
boot_broken() {
	local f keep=$work/nvme.keep rc=0
	f=$(in_root modinfo -k "$k612" -F filename nvme)
	cp "$root$f" "$keep"
	case $f in
	*.xz) xz -c "$root/lib/modules/$k61/updates/dkms/nvme.ko" >"$root$f" ;;
	*) cp "$root/lib/modules/$k61/updates/dkms/nvme.ko" "$root$f" ;;
	esac
	in_root update-initramfs -u -k "$k612" && start broken &&
		has "$work/out/broken.console.txt" 'ship: nvme stock' &&
		has "$work/out/broken.console.txt" 'ship: opengds: nvme: the hooked driver does not load' || rc=1
	cp "$keep" "$root$f"
	in_root update-initramfs -u -k "$k612" || rc=1
	return $rc
}

# the one line back, and on again
boot_off() {
	local rc=0
	in_root opengds-nvme-hook off && start off && has "$work/out/off.console.txt" 'ship: nvme stock' &&
		has "$work/out/off.console.txt" 'ship: opengds: nvme: .*nvme-stock' || rc=1
	in_root opengds-nvme-hook on || rc=1
	return $rc
}

part_boot() {
	once dkms
	[ -f "$root/boot/initrd.img-$k612" ] || { skipped boot "there is no initramfs of $k612: see the checks dkms-*"; return; }
	accel=$(vm/accel "$(vm/kernels/kernel 6.12)")
	check boot-image boot_image || return
	check boot-hooked-root-disk boot_hooked
	check boot-broken-driver-falls-back boot_broken
	check boot-parameter boot_parameter
	check boot-off boot_off
	rm -f "$work/disk.img"
}
