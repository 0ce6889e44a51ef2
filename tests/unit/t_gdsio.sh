#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Guards gdsio, gdsio_verify and gdsio sweep as programs, on host memory in place of a GPU: each
# transfer and memory type moves the right bytes, wrong blocks are named, the result line keeps
# its columns, the examples of the man pages run. Fails when a type reads or writes a wrong byte,
# when an exit status is not what the man page says, when a sweep loses its points.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
tmp=$(mktemp -d "${TMPDIR:-/tmp}/t_gdsio.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
bad=0 f=$tmp/f
export CUFILE_LOGFILE_PATH=$tmp/cufile.log CUFILE_ENV_PATH_JSON=$tmp/cufile.json
printf '{ "properties": { "allow_compat_mode": true } }\n' >"$tmp/cufile.json"
PATH=$PWD/build/host/tools/gdsio:$PATH

wrong() {
	echo "t_gdsio: $*" >&2
	sed 's/^/    /' "$tmp/out" >&2
	bad=1
}

# run STATUS COMMAND...: its output in $tmp/out
run() {
	local want=$1 status=0
	shift
	timeout 60 sim/run "$@" >"$tmp/out" 2>&1 </dev/null || status=$?
	[[ " $want " = *" $status "* ]] || wrong "status $status, not $want: $*"
}

# says N REGEX: so many lines of it match
says() {
	[ "$(grep -cE -- "$2" "$tmp/out")" = "$1" ] || wrong "not $1 lines of '$2'"
}

io=(-f "$f" -d 0 -w 2 -s 1M -i 64K)

# every transfer type writes and compares; some read what another one wrote. Those of cuFile say
# with status 3 that nothing went direct here
run 0 gdsio "${io[@]}" -x 1 -I 1 -V
for x in 0 1 2 3 4 5 "6 -B 3" "7 -B 3"; do
	case $x in [1-4]) status=0 ;; *) status=3 ;; esac
	case $x in [037]*)
		# shellcheck disable=SC2086 # the options are words
		run $status gdsio "${io[@]}" -x $x -I 2 -V -i 4K:64K:4K
		says 1 '^State: .* checksum: verified compared: 1048576 '
	esac
	# shellcheck disable=SC2086
	run $status gdsio "${io[@]}" -x $x -I 1 -V
	says 1 '^State: .* checksum: verified compared: 1048576 '
done
run 0 gdsio "${io[@]}" -x 1 -V
run 2 gdsio "${io[@]}" -x 8
says 1 'unknown transfer type'

# unaligned, by cuFile, which has edges for it
run 3 gdsio "${io[@]}" -x 6 -B 5 -U -I 1 -V -a 3 -b
says 1 '^State: .* checksum: verified compared: 1048576 '
says 1 '^IoType: RANDWRITE XferType: GPU_BATCH Threads: 2 IoDepth: 5 DataSetSize: 1024/1024\(KiB\) IOSize: 64\(KiB\) '
run 0 gdsio "${io[@]}" -x 1 -I 1 -V

# memory of the host is no fallback
for m in 2 3 4; do
	run 0 gdsio "${io[@]}" -m $m -V
	says 1 '^Routes: .* host: 1048576 \(100.00%\)'
done
# the GPU's by cuMemCreate is, as all of it here
run 3 gdsio "${io[@]}" -m 1 -I 1 -V
says 1 '^State: .* checksum: verified compared: 1048576 '

# one result a job, and one of all; a job file
cat >"$tmp/jobs" <<'END'
[global]
xfer_type=$T_XFER
rw=read
bs=64K
size=512K
do_verify=1

[job0]
filename=$T_FILE
num_threads=1
[job1]
filename=$T_FILE
num_threads=2
start_offset=512K
END
T_XFER=1 T_FILE=$f run 0 gdsio "$tmp/jobs" -J
says 1 '^IoType: READ XferType: CPUONLY Threads: 1 DataSetSize: 512/512\(KiB\)'
says 1 '^IoType: READ XferType: CPUONLY Threads: 2 DataSetSize: 512/512\(KiB\)'
says 1 '^IoType: READ XferType: CPUONLY Threads: 3 DataSetSize: 1024/1024\(KiB\)'

# mixed batches say how much of each
run 3 gdsio "${io[@]}" -x 6 -B 4 -M 50 -i 4K
says 1 '^State: .* mix: 50 read: [1-9][0-9]* written: [1-9][0-9]*$'
run 0 gdsio "${io[@]}" -x 1 -I 1 -V

# a block of another place, and one that another run left
cp "$f" "$tmp/old"
dd if="$f" of="$f" bs=4096 skip=7 seek=99 count=1 conv=notrunc status=none
run 1 gdsio "${io[@]}" -x 1 -V
says 1 "wrong data at offset 4055[0-9]*: .* \(misplaced: the stamp of offset 28672\)"
says 0 '^IoType'
run 0 gdsio "${io[@]}" -x 1 -I 1 -V
dd if="$tmp/old" of="$f" bs=4096 skip=50 seek=50 count=1 conv=notrunc status=none
run 1 gdsio "${io[@]}" -V -x 6 -B 4
says 1 "wrong data at offset 2048[0-9]*: .* \(stale: left by another run, "

# wait_for COMMAND...: until it succeeds, for a minute at most
wait_for() {
	local left=600
	until "$@" 2>/dev/null; do
		left=$((left - 1))
		[ "$left" -gt 0 ] || return 1
		sleep 0.1
	done
}

# SIGINT ends a run with the result so far; progress is told where no terminal is
sim/run gdsio "${io[@]}" -x 1 -T 300 --progress >"$tmp/out" 2>&1 &
wait_for grep -q ' s left$' "$tmp/out" || wrong "no progress"
kill -INT $!
wait $!
[ $? = 130 ] || wrong "an interrupted run has another status"
says 1 '^IoType: READ '

# a sweep resumes, and what was interrupted says so
sweep=(gdsio sweep -f "$tmp/s" -s 256K --sizes 4K --threads 1 --ways "CPUONLY,bounce" -T 0 --out "$tmp/r")
run 0 "${sweep[@]}"
says 2 ', verified; '
run 0 "${sweep[@]}" --resume
says 2 'of the last sweep'
[ "$(grep -c '<tr data-route="' "$tmp/r.html")" = 2 ] || wrong "the page has not all points"
grep -q Incomplete "$tmp/r.html" && wrong "a whole sweep is called incomplete"
rm "$tmp"/r.*
sim/run "${sweep[@]}" -T 9 >"$tmp/out" 2>&1 &
wait_for test -e "$tmp/r.html" || wrong "no page"
kill -INT $!
pkill -INT -P $! gdsio 2>/dev/null
wait $!
[ $? = 130 ] || wrong "an interrupted sweep has another status"
grep -q 'Incomplete:</strong> 0 of 2' "$tmp/r.html" || wrong "the page says not that it is incomplete"

# the examples of the man pages, in a folder of ours and smaller
mkdir "$tmp/a" "$tmp/b"
n=0
while read -r line; do
	line=$(sed "s|/mnt|$tmp|g; s/ [14]G / 256K /; s/-T 60/-T 1/; s/-s 16M/-s 100K/; s/-i 1M/-i 64K/
		s/sweep /sweep -T 0 /; s/64K,1M/4K,64K/" <<<"$line")
	# shellcheck disable=SC2086 # its words
	run "0 3" $line
	n=$((n + 1))
done < <(sed -n 's/^\.Dl \(gdsio.*\)/\1/p' man/gdsio.1 man/gdsio_verify.1)
[ "$n" = 8 ] || wrong "$n examples, not 8"
says 1 '^Data Verification Success$'
run 1 gdsio_verify -f "$f" -s 2M
says 1 'but -o and -s reach to 2097152'
run 2 gdsio_verify -s 2M

[ "$bad" = 0 ] && echo "t_gdsio: ok"
exit $bad
