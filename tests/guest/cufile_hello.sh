#!/bin/bash
# SPDX-License-Identifier: MIT
# kernels: 6.12
# vm: --trace --vram 2G --mem 2G
# time: 60
# time-long: 180
# Guards examples/hello_gds, the first program anybody runs, as it stands: 256 MiB (with
# OPENGDS_LONG=1 1 GiB) from GPU memory to a file on ext4 and back, direct; the same program
# with no card and no module (host memory stands for the GPU); and examples/api_sequence,
# which must take every route. Fails when a byte of the direct run did not go over the
# card's BAR or one byte more did, when the buffer was not poison before or, seen from
# outside, does not hold the file's bytes at the end, when the file does not hold the
# documented pattern, when a run does not verify, or when it tells other routes than it took.
. "$(dirname "$0")/lib.sh"

t_hook_there || t_skip "no hooked nvme driver for kernel $OPENGDS_KERNEL"
export CUFILE_LOGFILE_PATH=$t_tmp/cufile.log
ex=$t_top/build/host/examples
file=/mnt/hello.dat
size=256M bytes=$((256 << 20))
[ -z "${OPENGDS_LONG:-}" ] || size=1G bytes=$((1 << 30))
# its checkers make every copy slow
! t_short || size=128M bytes=$((128 << 20))

# said NAME REGEX: a line of the output matches
said() { t_check "$1: says '$2'" grep -qE -- "$2" "$t_tmp/$1"; }

# word OFFSET: the file's word there is what hello_gds documents
word() {
	local is want
	is=$(od -An -v -tx8 -j "$1" -N 8 "$file" | tr -d ' ')
	want=$(printf '%016x' $((($1 / 8 + 1) * 0x9e3779b97f4a7c15)))
	t_check "word at $1 of the file is $want (is $is)" [ "$is" = "$want" ]
}

# hello NAME [VARIABLE=VALUE...] -- FILE SIZE
hello() {
	local name=$1 status=0 env=()
	shift
	while [ "$1" != -- ]; do
		env+=("$1")
		shift
	done
	shift
	env "${env[@]}" "$ex/hello_gds" "$@" >"$t_tmp/$name" 2>&1 || status=$?
	sed "s/^/  $name: /" "$t_tmp/$name"
	t_check "$name: status $status" [ "$status" = 0 ]
}

# without a card: the kernel's own nvme driver, no gpu-sim, no nvidia-fs
modprobe -q nvme || t_fail "modprobe nvme"
t_mkfs ext4 0 /mnt
hello stock -- $file 64M
said stock "^routes: write bounce $((64 << 20)) read bounce $((64 << 20))\$"
said stock '^cuFileRead: R-NO-MODULE: .+; .+'
said stock "^verify OK: $((64 << 20)) bytes\$"
word 0
word $(((64 << 20) - 8))
t_umount_all
rmmod nvme || t_fail "rmmod nvme"

t_load
t_mkfs ext4 0 /mnt
t_section begin hello || t_fail "no proof daemon"
rm -f "$t_tmp/witness"
hello direct "T_WITNESS=$t_tmp/witness" "LD_PRELOAD=$t_bin/t_witness.so" -- $file $size
# written once, read once
t_check "direct: the drives' DMA and the buffer" t_section end hello \
	--bar-bytes $((2 * bytes)) --ram-max 64M --witness "$t_tmp/witness" --file $file --buffers 1
said direct "^routes: write nvfs $bytes read nvfs $bytes\$"
said direct "^verify OK: $bytes bytes\$"
for at in 0 4088 4096 $((bytes / 2 + 12288)) $((bytes - 8)); do word $at; done
t_check "the file has $bytes bytes" [ "$(stat -c %s $file)" = "$bytes" ]
rm $file

"$ex/api_sequence" /mnt/seq.dat >"$t_tmp/sequence" 2>&1 || t_bad "api_sequence: status $?"
sed 's/^/  sequence: /' "$t_tmp/sequence"
said sequence '^nvfs +2097152  read, registered, aligned$'
said sequence '^nvfs +2097152  write, registered, aligned$'
said sequence '^nvfs +65536  read, pointer moved on$'
said sequence '^nvfs +65536  read, the same by bufPtr_offset$'
said sequence '^(staged|nvfs) +2097152  read, not registered$'
said sequence '^staged +[0-9]+  read, 1 MiB at byte 1000$'
said sequence '^staged +1044480  write, 1 MiB at an odd byte$'
said sequence '^bounce +4096  write, 1 MiB at an odd byte$'
said sequence '^bar +100  read, 100 bytes: less than a block$'
said sequence '^host +1048576  read into host memory$'
said sequence '^plan +1044480  plan: whole blocks, 1044480 of them direct$'
said sequence '^nvfs +1048576  read, strict$'
t_unload
t_done
