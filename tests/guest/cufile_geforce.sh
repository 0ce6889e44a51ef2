#!/bin/bash
# SPDX-License-Identifier: MIT
# kernels: 6.12 debug
# vm: --trace --vram 2G --mem 2G
# time: 60
# Guards the library on a card whose driver pins nothing that the process has not listed (gpu-sim
# geforce=1): who knows NVIDIA's ABI alone gets EINVAL with its cause, and so does the library with
# "register_peers" off, strict; with it on, hello_gds goes direct by the three-part proof. Then
# memory that is freed while registered and taken again at its address, by two processes at once,
# and processes that are killed. Fails when a byte goes another way or is wrong, or when a
# pin, a name of memory or a page of the card stays.
. "$(dirname "$0")/lib.sh"

t_hook_there || t_skip "no hooked nvme driver for kernel $OPENGDS_KERNEL"
export CUFILE_LOGFILE_PATH=$t_tmp/cufile.log CUFILE_ENV_PATH_JSON=$t_tmp/cufile.json
file=/mnt/hello.dat size=64M bytes=$((64 << 20)) seed=${T_SEED:-$RANDOM}
hello=$t_top/build/host/examples/hello_gds
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

for i in 1 2; do
	mkdir -p /mnt/$i
	cufile_reuse --dir /mnt/$i --threads 3 --seconds 4 --seed $((seed + i)) \
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
