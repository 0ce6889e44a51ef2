# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034,SC2154 # sourced by guest; its variables
# vm: --nvme 3
# NVMe over TCP: the kernel's target exports a drive of this machine, and this machine connects to
# it over loopback. ext4 on the remote namespace, or that itself.

nvmet=/sys/kernel/config/nvmet
nvmet_nqn=nqn.2026-11.org.opengds:matrix

on_variants() { printf '%s\n' ext4 dev; }
on_needs() { m_module nvmet nvmet-tcp nvme-tcp; }

# nvmet_namespace: the block device of the connected subsystem
nvmet_namespace() {
	local s d
	for s in /sys/class/nvme-subsystem/nvme-subsys*; do
		[ "$(cat "$s/subsysnqn" 2>/dev/null)" = $nvmet_nqn ] || continue
		# with native multipath the head is the subsystem's, else the controller's
		for d in "$s"/nvme*n1 "$s"/nvme*/nvme*n1; do
			d=/dev/${d##*/}
			[ ! -b "$d" ] || { echo "$d"; return 0; }
		done
	done
	return 1
}

on_up() {
	local dev
	mountpoint -q /sys/kernel/config || mount -t configfs configfs /sys/kernel/config ||
		t_fail "mount configfs"
	mkdir -p $nvmet/subsystems/$nvmet_nqn/namespaces/1 $nvmet/ports/1 || t_fail "nvmet: mkdir"
	echo 1 >$nvmet/subsystems/$nvmet_nqn/attr_allow_any_host
	m_drive 0 >$nvmet/subsystems/$nvmet_nqn/namespaces/1/device_path
	echo 1 >$nvmet/subsystems/$nvmet_nqn/namespaces/1/enable || t_fail "nvmet: enable"
	echo tcp >$nvmet/ports/1/addr_trtype
	echo ipv4 >$nvmet/ports/1/addr_adrfam
	echo 127.0.0.1 >$nvmet/ports/1/addr_traddr
	echo 4420 >$nvmet/ports/1/addr_trsvcid
	ln -s $nvmet/subsystems/$nvmet_nqn $nvmet/ports/1/subsystems/ || t_fail "nvmet: no port"
	t_wait 10 test -c /dev/nvme-fabrics || t_fail "no /dev/nvme-fabrics"
	echo "transport=tcp,traddr=127.0.0.1,trsvcid=4420,nqn=$nvmet_nqn" >/dev/nvme-fabrics ||
		t_fail "connect: $(dmesg | tail -n 2)"
	t_wait 20 nvmet_namespace >/dev/null || t_fail "no namespace of $nvmet_nqn"
	dev=$(nvmet_namespace)
	if [ "$1" = dev ]; then
		m_device "$dev"
	else
		m_fs ext4 "$dev"
	fi
}

on_again() {
	if [ -n "$m_file" ]; then blockdev --flushbufs "$m_file"; else m_again; fi
}

on_down() {
	local s c
	[ -n "$m_file" ] || m_down
	for s in /sys/class/nvme-subsystem/nvme-subsys*; do
		[ "$(cat "$s/subsysnqn" 2>/dev/null)" = $nvmet_nqn ] || continue
		for c in "$s"/nvme*/delete_controller; do echo 1 >"$c" || t_fail "disconnect: $c"; done
	done
	rm $nvmet/ports/1/subsystems/$nvmet_nqn && rmdir $nvmet/ports/1 || t_fail "nvmet: the port stays"
	echo 0 >$nvmet/subsystems/$nvmet_nqn/namespaces/1/enable
	rmdir $nvmet/subsystems/$nvmet_nqn/namespaces/1 $nvmet/subsystems/$nvmet_nqn ||
		t_fail "nvmet: the subsystem stays"
}
