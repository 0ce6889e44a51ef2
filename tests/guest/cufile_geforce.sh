#!/bin/bash
# SPDX-License-Identifier: MIT
# kernels: 6.12 debug
# vm: --trace --vram 2G --mem 2G
# time: 110
# Guards the library on a card whose driver pins nothing that the process has not listed (gpu-sim
# geforce=1): who knows NVIDIA's ABI alone gets EINVAL with its cause, and so does the library with
# "register_peers" off: gdsio -x 0 says what -22 is and what to do, and its status is that of a run
# that was not direct, or (strict) of one that failed. With it on, hello_gds and gdsio go direct by
# the three-part proof, gdsio with memory of cuMemCreate, too. What is registered twice is one
# entry. Then memory that is freed while registered and taken again at its address, by two
# processes at once (one by cuMemCreate), and processes that are killed. Fails when a byte goes
# another way or is wrong, when a refusal has no next step, or when a pin, a name of memory or a
# page of the card stays.
. "$(dirname "$0")/lib.sh"

t_hook_there || t_skip "no hooked nvme driver for kernel $OPENGDS_KERNEL"
export CUFILE_LOGFILE_PATH=$t_tmp/cufile.log CUFILE_ENV_PATH_JSON=$t_tmp/cufile.json
file=/mnt/hello.dat size=64M bytes=$((64 << 20)) seed=${T_SEED:-$RANDOM}
hello=$t_top/build/host/examples/hello_gds
PATH=$t_top/build/host/tools/gdsio:$t_top/build/host/tools/gdscheck:$PATH
nothing_named() { [ "$(t_sim rm_names)" = 0 ]; }
all_free() { [ "$(t_sim free_pages)" = "$(t_sim total_pages)" ]; }

configure() {
	printf '{ "logging": { "level": "INFO" }, "opengds": { "register_peers": %s } }\n' "$1" \
		>"$CUFILE_ENV_PATH_JSON"
	rm -f "$CUFILE_LOGFILE_PATH"
}

# nothing_stays WHAT
nothing_stays() {
	t_check_pins
	t_check "$1: no name of memory stays" t_wait 10 nothing_named
	t_check "$1: nor a page" t_wait 20 all_free
}

# gdsio_is STATUS NAME REGEX... -- ARGUMENTS...: that status, and a line like each
gdsio_is() {
	local want=$1 name=$2 status=0 re lines=()
	shift 2
	while [ "$1" != -- ]; do
		lines+=("$1")
		shift
	done
	shift
	rm -f "$t_tmp/witness"
	T_WITNESS=$t_tmp/witness LD_PRELOAD=$t_bin/t_witness.so gdsio "$@" >"$t_tmp/$name" 2>&1 ||
		status=$?
	sed "s/^/  $name: /" "$t_tmp/$name"
	t_check "$name: status $status, wanted $want" [ "$status" = "$want" ]
	for re in ${lines[@]+"${lines[@]}"}; do
		t_check "$name: '$re'" grep -qE -- "$re" "$t_tmp/$name"
	done
}

# gdsio_direct NAME ARGUMENTS...: written, read back and compared, every byte by the drive
gdsio_direct() {
	local name=$1
	shift
	rm -f "$io"
	t_section begin "$name" || t_fail "no proof daemon"
	gdsio_is 0 "$name" "^Routes: nvfs: $((16 << 20)) \\(100.00%\\) .* direct: $((16 << 20)) edge: 0 " \
		'^State: .* checksum: verified ' -- -f $io -d 0 -w 1 -s 16M -i 1M -I 1 -x 0 -V "$@"
	t_check "$name: the drives' DMA and the buffer" t_section end "$name" --bar-bytes 32M \
		--ram-max 16M --witness "$t_tmp/witness" --file $io --buffers 1
}
io=/mnt/io.dat

T_SIM="geforce=1 poison=1" t_load
t_mkfs ext4 0 /mnt
nvfs_copy make /mnt/f 1M 1 || t_fail "cannot make /mnt/f"
t_expect "NVIDIA's ABI alone" EINVAL "" nvfs_try read --file /mnt/f
t_check "... and dmesg has the next step" eval \
	'dmesg | tail -n 5 | grep -qE "nvidia-fs.*(-22|EINVAL)"'

configure false
OPENGDS_STRICT=1 "$hello" $file $size >"$t_tmp/off" 2>&1
status=$?
sed 's/^/  off: /' "$t_tmp/off"
t_check "register_peers off, strict: it fails (status $status)" [ "$status" != 0 ]
t_check "... and the log has the cause" grep -qE 'refuses to pin this memory \(-22\)' \
	"$CUFILE_LOGFILE_PATH"
rm -f $file
gated='Reason: R-PIN-GATED: the GPU driver refuses to pin this memory \(-22\), as on GeForce, .*; leave "register_peers" on, '
gdsio_is 3 gated "^$gated" '^Routes: nvfs: 0 ' -- -f $io -d 0 -w 1 -s 16M -i 1M -I 1 -x 0 -V
OPENGDS_STRICT=1 gdsio_is 1 gated-strict 'gdscheck --explain-error 50[0-9]{2} ' -- -f $io -d 0 -w 1 -s 16M -i 1M -I 1 -x 0
code=$(sed -n 's/.*--explain-error \([0-9]*\) .*/\1/p' "$t_tmp/gated-strict")
t_check "... and $code is explained" eval \
	'gdscheck --explain-error "$code" | grep -q "refused with -22 (GeForce"'
t_check "... and so is -22" eval \
	'gdscheck --explain-error -22 | grep -q "gated: libcuda made no third-party object"'
gdscheck >"$t_tmp/doctor" 2>&1
t_check "the doctor's next step is the setting" \
	grep -q '^Next: D-04: set opengds.register_peers to true' "$t_tmp/doctor"

configure true
t_section begin hello || t_fail "no proof daemon"
rm -f "$t_tmp/witness"
OPENGDS_STRICT=1 T_WITNESS=$t_tmp/witness LD_PRELOAD=$t_bin/t_witness.so "$hello" $file $size \
	>"$t_tmp/direct" 2>&1
status=$?
sed 's/^/  direct: /' "$t_tmp/direct"
t_check "listed: status $status" [ "$status" = 0 ]
t_check "listed: the drives' DMA and the buffer" t_section end hello \
	--bar-bytes $((2 * bytes)) --ram-max 64M --witness "$t_tmp/witness" --file $file --buffers 1
t_check "listed: it says so" grep -q "^routes: write nvfs $bytes read nvfs $bytes\$" "$t_tmp/direct"
t_check "listed: and so does the log" grep -q 'pins for nvidia-fs what this process lists' \
	"$CUFILE_LOGFILE_PATH"
nothing_stays "hello"

gdsio_direct direct
gdsio_direct vmm -m 1
nothing_stays "gdsio"
OPENGDS_STRICT=1 t_run "registered twice: refused, and a part of it is no second entry" \
	cufile_errors --dir /mnt --only buffer-twice
nothing_stays "registered twice"

# long enough for some lives of the memory
seconds=4
! t_debug || seconds=20
for i in 1 2; do
	mkdir -p /mnt/$i
	kind=()
	[ $i = 1 ] || kind=(--vmm)
	cufile_reuse --dir /mnt/$i --threads 3 --seconds $seconds --seed $((seed + i)) "${kind[@]}" \
		>"$t_tmp/reuse.$i" 2>&1 &
	pids[i]=$!
done
for i in 1 2; do
	status=0
	wait "${pids[i]}" || status=$?
	t_check "cufile_reuse $i of two, seed $((seed + i)): status $status" [ $status = 0 ]
	sed 's/^/  /' "$t_tmp/reuse.$i"
done
nothing_stays "reuse"

for stop in kill free; do
	cufile_stress --dir /mnt --cards 1 --threads 16 --seconds 2 --stop $stop --seed "$seed" \
		>"$t_tmp/out" 2>&1
	status=$?
	sed 's/^/  /' "$t_tmp/out"
	t_check "cufile_stress, $stop, seed $seed: status $status" [ $status = 0 ]
	nothing_stays "$stop"
done
t_unload
t_done
