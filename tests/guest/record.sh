#!/bin/bash
# SPDX-License-Identifier: MIT
# vm: --topology switch --iommu pt
# vm-more: --topology switch --iommu none
# vm-more: --topology ports --iommu pt
# vm-more: --topology ports --iommu on
# vm-more: --topology functions
# vm-more: --topology switch --gpus 2 --nvme 2
# vm-more: --topology ports --gpus 2 --nvme 2
# kernels: 6.12
# core: none
# time: 60
# Guards what the doctor of gdscheck says of each machine that vm/run makes, and of its record: the
# verdicts are those of tests/fixtures/machines/records/expected, by which t_gdscheck judges the
# records that are kept there, and the archive that --record makes now is judged as the machine is.
# Then files of an ext4, one of which the journal has. Fails when a verdict is another one.
# vm/run OPTIONS --out DIR -- bash tests/guest/record.sh leaves the archives in DIR/records.
. "$(dirname "$0")/lib.sh"

t_hook_there || t_skip "no hooked nvme driver for kernel $OPENGDS_KERNEL"
gdscheck=$t_top/build/host/tools/gdscheck/gdscheck
expected=$t_top/tests/fixtures/machines/records/expected
export LD_LIBRARY_PATH=$t_top/build/host/lib:$t_top/build/host/sim
export CUFILE_LOGFILE_PATH=$t_tmp/cufile.log

# this_machine: how the machine is called in `expected`
this_machine() {
	local gpu drive iommu=none shape=ports cards drives
	gpu=$(readlink -f /sys/bus/pci/drivers/gpu-sim/*:* | head -n 1)
	drive=$(readlink -f "/sys/block/$(basename "$(t_drive 0)")/device/device")
	cards=$(find /sys/bus/pci/drivers/gpu-sim/ -name '*:*' | wc -l)
	drives=$(find /sys/block -name 'nvme*' | wc -l)
	if [ "$(dirname "$gpu")" = "$(dirname "$drive")" ]; then
		shape=functions
	elif [ "$(dirname "$(dirname "$gpu")")" = "$(dirname "$(dirname "$drive")")" ] &&
		[[ $(dirname "$(dirname "$gpu")") != */pci????:?? ]]; then
		shape=switch
	fi
	[ ! -e "$gpu/iommu_group/type" ] || iommu=$(<"$gpu/iommu_group/type")
	iommu=${iommu/identity/pt}
	iommu=${iommu/DMA*/on}
	echo "$shape-$iommu$([ "$cards$drives" = 11 ] || echo "-$cards-cards")${1:+-$1}"
}

# verdicts FILE: "ID VERDICT" of a JSON report, of what needs a hand
verdicts() {
	awk -F'"' '$2 == "id" { id = $4 } $2 == "verdict" && id { print id, $4; id = "" }' "$1"
}
needing() { verdicts "$1" | grep -E ' (WARN|FAIL)$' | tr ' \n' '= ' | sed 's/ $//'; }

# one [WORD]: this machine, its record
one() {
	local name want got
	name=$(this_machine "${1:-}")
	"$gdscheck" --json >"$t_tmp/live" 2>"$t_tmp/err"
	"$gdscheck" --record "$t_tmp/record.tar" >"$t_tmp/said" 2>&1 ||
		t_bad "$name: --record: $(<"$t_tmp/said")"
	rm -rf "$t_tmp/root"
	mkdir "$t_tmp/root"
	tar -xf "$t_tmp/record.tar" -C "$t_tmp/root"
	"$gdscheck" --json --root "$t_tmp/root" >"$t_tmp/recorded" 2>>"$t_tmp/err"
	t_check "$name: its record is judged as it is" \
		diff <(verdicts "$t_tmp/live") <(verdicts "$t_tmp/recorded")
	want=$(sed -n "s/^$name: *//p" "$expected")
	got=$(needing "$t_tmp/live")
	t_check "$name: verdicts '$got', wanted '$want'" [ "$got" = "$want" ]
	grep -q "^$name:" "$expected" || t_bad "$name is not in $expected"
	cp "$t_tmp/record.tar" "$OPENGDS_OUT/records/$name.tar"
}

mkdir -p "$OPENGDS_OUT/records"
t_load
t_mkfs ext4 0 /mnt
if t_drive 1 >/dev/null; then t_mkfs xfs 1 /data; fi
one
if [ "$(this_machine)" = switch-pt ]; then
	t_umount_all
	t_unload
	T_SIM=geforce=1 t_load
	t_mkfs ext4 0 /mnt
	one geforce
	"$gdscheck" >"$t_tmp/text" 2>&1
	sed 's/^/  /' "$t_tmp/text"
	t_check "a GeForce has one next step" [ "$(grep -c '^Next: ' "$t_tmp/text")" = 1 ]

	# a file that the journal has, and its twin
	echo x >/mnt/plain
	cp /mnt/plain /mnt/journalled
	chattr +j /mnt/journalled || t_bad "chattr +j"
	"$gdscheck" -a /mnt/plain >"$t_tmp/plain" 2>&1
	"$gdscheck" -a /mnt/journalled >"$t_tmp/journalled" 2>&1
	t_check "a plain file" grep -q '^  OK    D-62  file features  *a plain file' "$t_tmp/plain"
	t_check "a journalled one" \
		grep -q '^  FAIL  D-62  file features  *the file is journalled' "$t_tmp/journalled"
	for f in plain journalled; do
		t_check "$f: O_DIRECT" grep -q '^  OK    D-63 ' "$t_tmp/$f"
	done
fi
t_unload
t_done
