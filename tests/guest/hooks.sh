#!/bin/bash
# SPDX-License-Identifier: MIT
# kernels: 6.1 6.12 7 debug
# core: 7
# time: 35
# Guards how storage drivers are found and what they are promised: attached when nvidia-fs
# loads, when they load, at each open; half a pair of symbols, and a driver that refuses the
# table, are named with the reason; each driver that is known is listed. Another consumer of
# the default v1 table (kernel/hook-test) moves bytes by the addresses it gets, also for a PCI
# function that nvidia-fs did not know before; a request of host and GPU memory fails and is
# counted. Fails when a line, a byte, a counter or a promise that hook-test checks is wrong.
. "$(dirname "$0")/lib.sh"

t_hook_there || t_skip "no hooked nvme driver for kernel $OPENGDS_KERNEL"
param=/sys/module/hook_test/parameters

# t_driver TEXT KEY REGEX: its line in proc file opengds
t_driver() {
	if grep -qE "^driver $2: $3\$" $t_proc/opengds; then
		t_ok "$1"
	else
		t_bad "$1: $(grep "^driver $2:" $t_proc/opengds || echo "no line of $2")"
	fi
}

t_insmod gpu-sim
modprobe -q nvme-core || t_fail "modprobe nvme-core"
t_insmod nvidia-fs
t_wait 10 test -c /dev/nvidia-fs0 || t_fail "nvidia-fs.ko made no /dev/nvidia-fs0"
for key in nvme nvme_rdma sfxvdriver nvmeib_common lnet beegfs mmfslinux rpcrdma scatefs \
	scsi_mod; do
	t_driver "$key is not there, and why" $key \
		"not attached: no loaded module exports its hook: is it loaded, and is it the patched one\?"
done
t_check "modules lists none" test "$(cat $t_proc/modules)" = "wekafsio: 1"

exec 5<>/dev/nvidia-fs0
form=v1
modinfo "$OPENGDS_BUILD/nvme.ko" | grep -q '^nvfs: *v2' && form=v2
t_insmod nvme
t_driver "nvme attaches when it loads" nvme "attached \($form\)"
exec 5>&-
t_wait 20 t_drive 0 >/dev/null || t_fail "drive 0 did not appear"
pci=$(basename "$(readlink -f "/sys/block/$(basename "$(t_drive 0)")/device/device")")
case $pci in ????:*) ;; *) pci=$(basename "$(find -L /sys/bus/pci/drivers/nvme -maxdepth 1 -name '????:*' | head -1)") ;; esac

t_insmod hook-test "disk=$pci" refuse=1
t_driver "beegfs attaches when it loads" beegfs "attached \(v1\)"
t_driver "half a pair is refused and named" lnet \
	"not attached: half a hook: lustre_v1_register_nvfs_dma_ops is exported, lustre_v1_unregister_nvfs_dma_ops is not"
t_check "once in the kernel log" test "$(dmesg | tac | sed '/opengds-test: begin/q' |
	grep -c 'lnet: not attached: half a hook')" = 1
t_driver "a refusal is named" scatefs \
	"not attached: scatefs_register_nvfs_dma_ops refused the v1 table \(-(EOPNOTSUPP|95)\)"
echo 0 >$param/refuse
exec 5<>/dev/nvidia-fs0 5>&-
t_driver "and tried again at the next open" scatefs "attached \(v1\)"
t_check "modules lists those attached" test "$(cut -d: -f1 $t_proc/modules | tr '\n' ' ')" = \
	"nvme beegfs scatefs wekafsio "
t_check "a driver that is attached stays" sh -c "! rmmod hook-test 2>/dev/null"

dev=/dev/hooktest0
t_wait 10 test -b $dev || t_fail "no $dev"
nvfs_copy make "$t_tmp/f" 8M 7 || t_fail "make a file"
# t_both TEXT: the disk's 8 MiB into GPU memory and back out, as other bytes
t_both() {
	dd if="$t_tmp/f" of=$dev bs=1M oflag=direct status=none || t_bad "dd to $dev"
	t_run "$1, read" nvfs_copy read --route nvfs --file $dev --size 8M --buffer 4M --seed 7 --no-proof
	t_run "$1, write" nvfs_copy write --route nvfs --file $dev --size 8M --buffer 4M --seed 9 --no-proof
	t_run "$1, and the disk has it" nvfs_copy check $dev 0 8M 9
}
export GPU_SIM_SCATTER=64k
t_both "list of the provider"
gpu=$(<$param/gpu_requests)
t_check "requests of GPU memory were made" test "$gpu" -gt 0
echo 1 >$param/own_sg
t_both "list of the driver"
t_check "more of them" test "$(<$param/gpu_requests)" -gt "$gpu"

for own in 0 1; do
	echo $own >$param/own_sg
	before=$(t_stat Error cpu-gpu-pages)
	echo 1 >$param/mixed
	t_expect "host and GPU memory mixed, own_sg $own" EIO "" nvfs_try read --file $dev --size 64K
	echo 0 >$param/mixed
	t_check "is counted" test "$(t_stat Error cpu-gpu-pages)" -gt "$before"
done
t_check "the driver saw the refusals" test "$(<$param/refused)" -ge 2
t_run "and then it works" nvfs_try read --file $dev --size 64K
t_check "no promise was broken" test "$(<$param/bad)" = 0

# loaded before nvidia-fs; addresses for a function that is no drive
rmmod nvidia-fs || t_fail "rmmod nvidia-fs"
rmmod hook-test || t_fail "rmmod hook-test"
other=$(basename "$(find /sys/bus/pci/drivers/virtio-pci -name '????:*' | head -1)")
t_insmod hook-test "disk=$pci" "dma=$other"
t_insmod nvidia-fs
t_wait 10 test -c /dev/nvidia-fs0 || t_bad "no /dev/nvidia-fs0"
t_driver "nvme attaches when nvidia-fs loads" nvme "attached \($form\)"
t_driver "beegfs, too" beegfs "attached \(v1\)"
dd if="$t_tmp/f" of=$dev bs=1M oflag=direct status=none || t_bad "dd to $dev"
t_run "a first read, addresses for $other" nvfs_try read --file $dev --size 64K --seed 7
refused=$(<$param/refused)
t_check "which was not known when it asked" test "$refused" -ge 1
t_both "addresses for $other"
t_check "and is known from then on" test "$(<$param/refused)" = "$refused"
t_check "no promise was broken" test "$(<$param/bad)" = 0
t_unload
t_done
