#!/bin/bash
# SPDX-License-Identifier: MIT
# kernels: 6.12
# vm: --trace --vram 2G --mem 2G
# time: 50
# time-long: 140
# Guards gdsio as users run it: write with stamps and verify, then verify with four
# threads, both direct; batches and streams; the same through host memory; a sweep, in which
# each way goes its way; gdsio_verify; what its exit status says. The long form moves 1 GiB.
# Fails when a byte of a direct run did not go over the card's BAR or one byte more did,
# when a buffer was not poison before or, seen from outside, does not hold its last piece of
# the file afterwards, when the routes that gdsio tells are not those of the trace, when
# host memory runs touch the BAR, when a fallback ends with status 0, or when wrong data
# is not named.
. "$(dirname "$0")/lib.sh"

t_hook_there || t_skip "no hooked nvme driver for kernel $OPENGDS_KERNEL"
PATH=$t_top/build/host/tools/gdsio:$PATH
export CUFILE_LOGFILE_PATH=$t_tmp/cufile.log
size=64M bytes=$((64 << 20)) ops=64
[ "${OPENGDS_LONG:-0}" != 1 ] || size=1G bytes=$((1 << 30)) ops=1024
file=/mnt/f

# run STATUS NAME ARGUMENTS...: gdsio must end with that status; its output in $t_tmp/NAME
run() {
	local want=$1 name=$2 status=0
	shift 2
	rm -f "$t_tmp/witness"
	T_WITNESS=$t_tmp/witness LD_PRELOAD=$t_bin/t_witness.so gdsio "$@" \
		>"$t_tmp/$name" 2>&1 || status=$?
	sed "s/^/  $name: /" "$t_tmp/$name"
	[ "$status" = "$want" ] || t_bad "$name: gdsio ended with status $status, wanted $want"
}

# proved STATUS NAME "SECTION OPTIONS" ARGUMENTS...: the same as a section of the proof
proved() {
	local status=$1 name=$2 opts=$3
	shift 3
	t_section begin "$name" || t_fail "no proof daemon"
	run "$status" "$name" "$@"
	# shellcheck disable=SC2086 # the options are words
	t_check "$name: the drives' DMA and the buffers" t_section end "$name" $opts
}

# lines NAME N REGEX: so many lines of the output match
lines() {
	local n
	n=$(grep -cE -- "$3" "$t_tmp/$1")
	t_check "$1: $2 lines like '$3'" [ "$n" = "$2" ]
}

# columns NAME LINE "WORDS": what scripts cut out of the result line
columns() {
	local got
	got=$(awk -v line="$2" '/^IoType:/ && ++n == line { print $2, $4, $6, $8, $10, $18 }' \
		"$t_tmp/$1")
	t_check "$1: columns '$3' (are '$got')" [ "$got" = "$3" ]
}

# the fallback is to be bounce, not which of bar and bounce was the quicker one
T_SIM=rm=0 t_load
t_mkfs ext4 0 /mnt
kib=$((bytes >> 10))/$((bytes >> 10))
direct="^Routes: nvfs: $bytes \\(100.00%\\) .*whole_blocks: $bytes direct: $bytes edge: 0 retried: 0 witnessed: $bytes\$"
host="^Routes: nvfs: 0 .* host: $bytes \\(100.00%\\) .* direct: 0 "

# both passes go over the BAR: twice the file
proved 0 write "--bar-bytes $((2 * bytes)) --ram-max 64M --witness $t_tmp/witness --file $file --buffers 1" \
	-f $file -d 0 -w 1 -s $size -i 1M -I 1 -x 0 -V
lines write 2 "$direct"
lines write 1 '^Verifying data$'
columns write 1 "WRITE GPUD 1 $kib(KiB) 1024(KiB) $ops"
columns write 2 "READ GPUD 1 $kib(KiB) 1024(KiB) $ops"

proved 0 read "--bar-bytes $bytes --ram-max 64M --witness $t_tmp/witness --file $file --buffers 4" \
	-f $file -d 0 -w 4 -s $size -i 1M -I 0 -x 0 -V
lines read 1 "$direct"
columns read 1 "READ GPUD 4 $kib(KiB) 1024(KiB) $ops"

lines read 1 "^Link: $file: ext4 nvme[0-9]+n1 pci: [0-9a-f:.]+ link: .*, GPU 0 \\(.*\\) pci: [0-9a-f:.]+ link: "

# several at a time, by batches and on a stream: the same bytes on the same way. The witness
# knows single requests alone, so that the content is gdsio's to compare
many=$((8 << 20))
for x in 6 7; do
	proved 0 many$x "--bar-bytes $((2 * many)) --ram-max 2M" \
		-f $file -d 0 -w 2 -s 8M -i 256K -I 1 -x $x -B 4 -V
	lines many$x 2 "^Routes: nvfs: $many \\(100.00%\\) .* direct: $many edge: 0 "
	lines many$x 1 '^State: queue_depth: 8 checksum: verified '
done

rm $file
proved 0 host-write "--bar-bytes 0 --ram-min $((2 * bytes))" \
	-f $file -d 0 -w 4 -s $size -i 1M -I 1 -x 1 -V
lines host-write 2 "$host"
columns host-write 1 "WRITE CPUONLY 4 $kib(KiB) 1024(KiB) $ops"

# what was written through host memory is the same data
proved 0 mixed "--bar-bytes 16M --ram-max 4M --witness $t_tmp/witness --file $file --buffers 1" \
	-f $file -d 0 -w 1 -s 16M -i 1M -I 0 -x 0 -V

# whole blocks go direct at any offset; edges are told apart
run 0 unaligned -f $file -d 0 -w 2 -s 4M -i 64K -I 0 -U -x 5 -V
lines unaligned 1 '^State: .* checksum: verified compared: 4194304 '
lines unaligned 0 '^Routes: .* edge: 0 '
run 0 sweep sweep -f $file -s 4M --sizes 64K --threads 2 --ways nvfs,staged,bounce,GPU_BATCH -T 0 \
	--out "$t_tmp/page"
lines sweep 1 ' nvfs: .* by nvfs, .*, verified'
lines sweep 1 ' staged: .* by staged, .*, verified'
lines sweep 1 ' bounce: .* by bounce, .*, verified'
lines sweep 1 ' GPU_BATCH: .* by nvfs, .*, verified'
t_check "gdsio_verify: $file" gdsio_verify -f $file -s 1000001 -o 4097 -n 3 -c 300000 -t 5

# no direct route: said, and seen in the exit status
export CUFILE_FORCE_COMPAT_MODE=true
proved 3 fallback "--bar-bytes 0 --ram-min 16M" -f $file -d 0 -w 2 -s 16M -i 1M -I 0 -x 0 -V
lines fallback 1 '^Routes: nvfs: 0 .* bounce: 16777216 \(100.00%\) .* direct: 0 '
lines fallback 1 '^Reason: R-FORCE-COMPAT: .+; .+'
run 0 allowed -f $file -d 0 -w 2 -s 16M -i 1M -I 0 -x 0 -V --allow-fallback
unset CUFILE_FORCE_COMPAT_MODE

# a wrong byte is found and named, whichever thread meets it
printf x | dd of=$file bs=1 seek=9000000 conv=notrunc,fsync status=none
run 1 wrong -f $file -d 0 -w 4 -s 16M -i 1M -I 0 -x 0 -V
lines wrong 1 "^gdsio: $file: wrong data at offset 9000000: expected [0-9a-f]{16}, found 78[0-9a-f]{14}"
lines wrong 0 '^IoType:'
t_unload
t_done
