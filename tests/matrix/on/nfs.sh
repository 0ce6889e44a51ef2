# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034,SC2154 # sourced by guest
# NFS 3 and 4.2 from the guest's own server, over its loopback: ext4 below. The kernel's client opens
# no file with O_APPEND and O_DIRECT.

on_variants() { printf '%s\n' v3 v4; }
on_needs() { m_module nfsd nfs "nfs$([ "$1" = v3 ] && echo v3 || echo v4)"; }

serve() {
	# version 4 has one tree, whose root is no export by itself here
	echo "$under *(rw,no_root_squash,insecure,no_subtree_check,fsid=$([ "$1" = v4 ] && echo 0 || echo 7))" \
		>/etc/exports
	mkdir -p /run/rpcbind /var/lib/nfs/v4recovery
	mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd || t_fail "mount of nfsd"
	pidof rpcbind >/dev/null || rpcbind -w || t_fail rpcbind
	exportfs -ra || t_fail exportfs
	rpc.mountd || t_fail rpc.mountd
	rpc.nfsd --no-udp 2 || t_fail rpc.nfsd
	# no client of an earlier server is to be waited for
	echo Y >/proc/fs/nfsd/v4_end_grace 2>/dev/null || :
}

nfs() {
	local how=vers=4.2 path=/
	[ "$1" = v4 ] || how=vers=3,nolock path=$under
	mount -t nfs -o "$how,actimeo=0" "127.0.0.1:$path" "$m_dir" || t_fail "mount -t nfs -o $how"
}

on_up() {
	local top=$m_dir
	m_tool rpc.nfsd nfs-kernel-server
	m_tool mount.nfs nfs-common
	under=/mnt/export
	mkdir -p "$top" "$under"
	m_dir=$under
	m_fs ext4 "$(m_drive 0)"
	m_dir=$top
	serve "$1"
	nfs "$1"
	m_opts=(--lacks "append$([ "$1" = v4 ] || echo ,punch,unwritten)")
}

on_again() {
	umount "$m_dir" || t_fail "umount $m_dir"
	echo 3 >/proc/sys/vm/drop_caches
	nfs "$1"
}

on_down() {
	umount "$m_dir" || t_fail "umount $m_dir"
	rpc.nfsd 0
	pkill -x rpc.mountd
	exportfs -ua
	umount "$under" || t_fail "umount $under"
	umount /proc/fs/nfsd
}
