# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
# The fresh Debian as the root disk of a virtual machine: an emulated NVMe drive, its own kernel and
# initramfs. With the hooked driver, with one that is broken on purpose, with it turned off, by an
# initramfs of dracut, and by one from when there was no source to build from.

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

# start NAME [PARAMETERS [INITRD]]: boots it; the console is left in $work/out/NAME.console.txt
start() {
	local console=$work/out/$1.console initrd=${3:-$root/boot/initrd.img-$k612}
	rm -f "$console"
	timeout -k 5 400 qemu-system-x86_64 -accel "$accel" -M q35 -cpu EPYC -smp 2 -m 1G -nodefaults \
		-display none -no-reboot -kernel "$root/boot/vmlinuz-$k612" -initrd "$initrd" \
		-append "root=/dev/nvme0n1 ro console=ttyS0 panic=-1 oops=panic no_timer_check init=/ship-init ${2:-}" \
		-drive "file=$work/disk.img,if=none,id=d,format=raw,cache=unsafe" -device nvme,serial=ship,drive=d \
		-serial "file:$console" 2>"$console.err" || {
			tail -n 30 "$console"
			grep -v "warning: TCG doesn't support" "$console.err"
			return 1
		}
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

# the package came without a source to build from: every initramfs has its rule for nvme
boot_no_source() {
	start no-source '' "$work/initrd.no-source" && has "$work/out/no-source.console.txt" 'ship: nvme stock'
}

# dracut copies modprobe.d, too
boot_dracut() {
	in_root apt-get -q -y --no-install-recommends install dracut-core &&
		in_root dracut --no-hostonly --no-compress --force /boot/dracut.img "$k612" || return
	in_root lsinitramfs /boot/dracut.img >"$work/out/dracut.list"
	has "$work/out/dracut.list" 'updates/dkms/nvme\.ko' && has "$work/out/dracut.list" 'opengds/nvme-stock/nvme\.ko' || return
	start dracut '' "$root/boot/dracut.img" && has "$work/out/dracut.console.txt" 'ship: nvme hooked' &&
		start dracut-off opengds.nvme=stock "$root/boot/dracut.img" &&
		has "$work/out/dracut-off.console.txt" 'ship: nvme stock'
}

# broken: what lies in its place is a module of the other kernel
boot_broken() {
	local f
	f=$(module_file nvme "$k612")
	plain_module "$(module_file nvme "$k61")" "$work/nvme.other" || return
	case $f in
	*/updates/*.xz) xz -c "$work/nvme.other" >"$root$f" ;;
	*/updates/*) cp "$work/nvme.other" "$root$f" ;;
	*) echo "the driver of $k612 is $f"; return 1 ;;
	esac
	in_root update-initramfs -u -k "$k612" && start broken &&
		has "$work/out/broken.console.txt" 'ship: nvme stock' &&
		has "$work/out/broken.console.txt" 'ship: opengds: nvme: the hooked driver does not load'
}

# the one line back, and on again
boot_off() {
	local initrd=/boot/initrd.img-$k612
	in_root opengds-nvme-hook off && start off && has "$work/out/off.console.txt" 'ship: nvme stock' &&
		has "$work/out/off.console.txt" 'ship: opengds: nvme: .*nvme-stock' || return
	in_root opengds-nvme-hook on && in_root lsinitramfs "$initrd" >"$work/out/on.list" || return
	has "$work/out/on.list" 'opengds/load-nvme$' && hasnt "$work/out/on.list" 'etc/opengds/nvme-stock'
}

part_boot() {
	kernels && new_root dkms || return
	[ -f "$root/boot/initrd.img-$k612" ] || { skipped boot "there is no initramfs of $k612: see the checks dkms-*"; return; }
	accel=$(vm/accel "$(vm/kernels/kernel 6.12)")
	check boot-image boot_image || return
	check boot-hooked-root-disk boot_hooked
	check boot-parameter boot_parameter
	check boot-without-a-source boot_no_source
	check boot-dracut boot_dracut
	check boot-off boot_off
	check boot-broken-driver-falls-back boot_broken
	rm -f "$work/disk.img"
}
