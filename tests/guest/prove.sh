#!/bin/bash
# SPDX-License-Identifier: MIT
# kernels: 6.12 7
# vm: --trace
# vm-more: --trace --topology ports --iommu on
# time: 50
# time-long: 150
# expect-log: Buffer I/O error on dev dm-
# Guards gdscheck --prove on machines with one thing wrong: it names the true cause, and what it
# calls direct is what the drives' trace has, byte for byte. Fails when it says direct (or the
# trace has a byte over a card's BAR more or less than it says), when the exit status or the
# cause is another one, or when its file stays. Short: a good machine, and four bad ones.
# shellcheck disable=SC2317 # functions are called by t_check
. "$(dirname "$0")/lib.sh"

t_hook_there || t_skip "no hooked nvme driver for kernel $OPENGDS_KERNEL"
gdscheck=$t_top/build/host/tools/gdscheck/gdscheck
export LD_LIBRARY_PATH=$t_top/build/host/lib:$t_top/build/host/sim
as=()

# bar_bytes FILE: what the table says that drives moved over BARs. A staged read moves whole
# blocks around its bytes.
bar_bytes() {
	awk '$2 == "read" || $2 == "write" {
		for (i = 6; i < NF; i++) {
			if ($i == "nvfs" || $i == "p2pdma" || ($i == "staged" && $2 == "write"))
				sum += $(i + 1)
			if ($i == "staged" && $2 == "read")
				sum += int(($4 + $3 + 4095) / 4096) * 4096 - int($4 / 4096) * 4096
		}
	}
	END { printf "%d\n", sum }' "$1"
}

no_file() { [ -z "$(find "$1" -maxdepth 1 -name '.gdscheck*' 2>/dev/null)" ]; }
said() { grep -qE -- "$2" "$t_tmp/$1"; }

# prove STATUS NAME PATH REGEX...: one run, with the trace beside it
prove() {
	local want=$1 name=$2 path=$3 status=0 bytes re
	shift 3
	t_section begin "$name" || t_fail "no proof daemon"
	${as[@]+"${as[@]}"} "$gdscheck" --prove "$path" >"$t_tmp/$name" 2>&1 || status=$?
	# "not direct" ends in direct, too
	sed -Ei '/^[a-z0-9]+ +(read|write) /s/not (seen )?direct$/indirect/' "$t_tmp/$name"
	bytes=$(bar_bytes "$t_tmp/$name")
	t_check "$name: the drives moved the $bytes bytes over BARs that it tells" \
		t_section end "$name" --bar-bytes "$bytes"
	[ "$status" = "$want" ] || {
		sed "s/^/  $name: /" "$t_tmp/$name"
		t_bad "$name: status $status, wanted $want"
	}
	for re; do
		said "$name" "$re" || {
			sed "s/^/  $name: /" "$t_tmp/$name"
			t_bad "$name: no line like '$re'"
		}
	done
	[ "$want" = 0 ] || t_check "$name: the configured way is not called direct" \
		test -z "$(grep '^configured.* direct$' "$t_tmp/$name")"
	no_file "$path" || t_bad "$name: its file is still in $path"
}

good='^verdict: proven direct: all whole blocks, both directions$'
next='^    next: .'

again() {
	t_unload
	t_load
	t_mkfs ext4 0 /mnt
}

t_load
t_mkfs ext4 0 /mnt
# the module has taken the hook: there are no pages to map, or the kernel has none
pages=R-PAGES-MEMORY
[ "$OPENGDS_KERNEL" != 6.12 ] || pages=R-PAGES-KERNEL
prove 0 good /mnt "$good" '^nvfs .* direct$' '^staged .* direct$' '^bounce .* indirect$' \
	'^p2pdma +did not run' $pages
t_check "good: 18 rows are direct" test "$(grep -c ' direct$' "$t_tmp/good")" = 18
[[ $(</proc/cmdline) != *intel_iommu=on* ]] || {
	t_say "  (a translating IOMMU: the card's addresses were translated, see the trace)"
	t_unload
	t_done
}

mkdir -p "$t_tmp/shm"
mount -t tmpfs none "$t_tmp/shm" && t_mounts+=("$t_tmp/shm")
prove 3 tmpfs "$t_tmp/shm" '^verdict: works, not direct$' '^  R-FS-TYPE: ' "$next"
t_umount "$t_tmp/shm"

echo -1:22 >/sys/module/gpu_sim/parameters/fault_get_pages
prove 3 pin /mnt '^verdict: works, not direct$' '^  R-PIN-GATED: ' 'refused: -22' \
	'no object for peers' "$next"
echo 0 >/sys/module/gpu_sim/parameters/fault_get_pages

rmmod nvidia-fs
prove 3 nomodule /mnt '^verdict: works, not direct$' '^  R-NO-MODULE: ' "$next" 'not loaded$'
t_unload

# the kernel's own nvme driver: no hook. 6.12 has no P2PDMA either; on 7 that does it
T_STOCK=y t_load
t_mkfs ext4 0 /mnt
if grep -q '^p2pdma: used' $t_proc/opengds; then
	prove 0 stock /mnt "$good"
else
	prove 3 stock /mnt '^verdict: works, not direct$' 'driver nvme: not attached: ' "$next" \
		'R-MODULE-REFUSED'
fi
t_umount_all
rmmod nvme

if [ -z "${OPENGDS_LONG:-}" ]; then
	t_unload
	t_done
fi

# no room in BAR1 for the buffer: staging has some, so it is direct by that; said is why
again
echo 1 >/sys/module/gpu_sim/parameters/bar1_mb
prove 0 bar1 /mnt "$good" 'cuFileBufRegister error' 'refused: -12' 'BAR1 has no room' \
	'^configured .* staged [0-9]+ .* direct$'
echo 0 >/sys/module/gpu_sim/parameters/bar1_mb

# a card that shows other memory than asked for
echo 64 >/sys/module/gpu_sim/parameters/rm_lie
prove 0 lie /mnt "$good" 'R-BAR-PROOF'
echo 0 >/sys/module/gpu_sim/parameters/rm_lie

# the user's own settings
export CUFILE_FORCE_COMPAT_MODE=true
prove 3 forced /mnt '^verdict: works, not direct$' '^  R-FORCE-COMPAT: ' '^nvfs .* direct$'
unset CUFILE_FORCE_COMPAT_MODE

# read-only, and full
mount -o remount,ro /mnt
prove 5 readonly /mnt '^verdict: could not run$' 'mounted read-only: mount it'
mount -o remount,rw /mnt
# ext4 keeps 4096 blocks for itself; of the others 300 stay
read -r free block < <(stat -f -c '%f %S' /mnt)
fallocate -l $(((free - 4096 - 300) * block)) /mnt/fill || t_fail "fallocate"
prove 5 full /mnt '^verdict: could not run$' 'no room: free some'
rm /mnt/fill

# nodes that are not there, and nodes of somebody else
rm /dev/nvidia-fs*
prove 3 nodes /mnt '^verdict: works, not direct$' '^  R-MODULE-NODES: ' "$next"
rmmod nvidia-fs
t_insmod nvidia-fs dev_mode=0600
chmod 1777 /mnt
as=(setpriv --reuid 65534 --clear-groups)
chmod 1777 "$t_tmp"
prove 3 access /mnt '^verdict: works, not direct$' '^  R-MODULE-ACCESS: ' "$next"
as=()

# the journal has the data
t_umount_all
mkdir -p /mnt
mount -t ext4 -o data=journal "$(t_drive 0)" /mnt || t_fail "mount data=journal"
t_mounts=(/mnt)
prove 3 journal /mnt '^verdict: works, not direct$' '^  R-FS-JOURNAL: ' "$next"
t_unload

# modules in another order than usual: nvidia-fs looks when it is asked
t_insmod nvidia-fs
modprobe -q nvme-core
t_insmod nvme
t_wait 20 t_drive 0 >/dev/null || t_fail "no drive"
t_mkfs ext4 0 /mnt
prove 3 nogpu /mnt '^verdict: works, not direct$' '^  R-PIN-FAILED: ' 'no loaded module exports' \
	'load the GPU driver' "$next"
t_insmod gpu-sim
t_wait 10 test -c /dev/gpu-sim0 || t_fail "no card"
prove 0 order /mnt "$good"
t_umount_all

# a drive that fails where the file will lie
modprobe -q dm-mod
dev=$(t_drive 0)
dmsetup create --noudevsync bad --table "0 131072 linear $dev 0" || t_fail "dmsetup"
dm=/dev/$(dmsetup info -c --noheadings -o blkdevname bad)
mkfs.ext4 -q -F -O ^has_journal -E nodiscard,lazy_itable_init=1 "$dm" || t_fail "mkfs $dm"
t_mount ext4 "$dm" /mnt
prove 3 stacked /mnt '^verdict: works, not direct$' '^  R-STACKED: ' "$next"
fallocate -l 4M /mnt/try
sync /mnt/try
at=$(filefrag -e -b4096 /mnt/try | awk '$1 == "0:" { gsub(/\./, " "); print $4 }')
rm /mnt/try
sync
t_say "  the file's place: block $at"
dmsetup suspend --noudevsync bad
dmsetup load bad <<END
0 $((at * 8)) linear $dev 0
$((at * 8)) 8192 error
$((at * 8 + 8192)) $((131072 - at * 8 - 8192)) linear $dev $((at * 8 + 8192))
END
dmsetup resume --noudevsync bad
prove 5 drive /mnt '^verdict: could not run as configured$' 'Input/output error'
t_umount_all
dmsetup remove --noudevsync --retry bad || t_bad "dmsetup remove"
t_unload
t_done
