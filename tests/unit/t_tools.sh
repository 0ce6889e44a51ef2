#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Guards gdscp and gds_stats as users run them, with the library on the simulated GPU in host
# memory: the examples of their man pages, what --help and the page say of the same options, the
# live view on a terminal and without one, a process that ends below it. Fails when an example
# does not work as it stands, when an option is missing on either side, when what scripts parse
# is not there, and when the view does not end by q or leaves the terminal changed.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
top=$PWD
tmp=$(mktemp -d "${TMPDIR:-/tmp}/t_tools.XXXXXX")
trap 'rm -rf "$tmp"; [ -z "${pid:-}" ] || kill "$pid" 2>/dev/null' EXIT
PATH=$top/build/host/tools/gdscp:$top/build/host/tools/gds_stats:$PATH
export CUFILE_LOGFILE_PATH=$tmp/log CUFILE_ENV_PATH_JSON=$tmp/cufile.json
echo '{"profile": {"cufile_stats": 3}}' >"$CUFILE_ENV_PATH_JSON"
bad=0

check() { # TEXT COMMAND...
	local text=$1
	shift
	"$@" >"$tmp/out" 2>&1 && return
	echo "t_tools: $text: FAILED: $*"
	sed 's/^/  /' "$tmp/out"
	bad=1
}

# examples PAGE: its commands, as a shell reads them
examples() {
	sed -n '/^\.Sh EXAMPLES/,/^\.Sh SEE/s/^\.Dl //p' "man/$1.1" | sed 's/\\(dq/"/g'
}

# options PAGE: those of the page, then those of --help, each once
options() {
	sed -n '/^\.Bl/,/^\.El/s/^\.It Fl //p' "man/$1.1" | sed 's/\\&//g; s/ , /\n/g' |
		awk '{ print "-" $1 }' | sort -u >"$tmp/page"
	"$1" --help | awk '/^  -/ { for (i = 1; i < 3; i++) if ($i ~ /^-/) print $i }' | tr -d , |
		sort -u >"$tmp/help"
	diff "$tmp/page" "$tmp/help"
}

for t in gdscp gds_stats; do
	check "$t: page and --help have the same options" options "$t"
	check "$t: --version" bash -c "$t --version | grep -q '^$t version :[0-9]'"
done

# -- gdscp: its examples in a folder of their own, where /mnt/nvme is a folder of ours --
mkdir "$tmp/cp" "$tmp/nvme"
head -c 3000001 /dev/urandom >"$tmp/cp/model.bin"
head -c 5000 /dev/urandom >"$tmp/cp/config.bin"
touch -d 2001-01-01 "$tmp/cp/config.bin"
n=0
while IFS= read -r line; do
	line=${line//\/mnt\/nvme/$tmp/nvme}
	# the first makes what the second would not replace
	[ $n != 1 ] || rm "$tmp/nvme/model.bin"
	(cd "$tmp/cp" && "$top/sim/run" -- bash -ec "$line") >"$tmp/ex.$n" 2>&1 ||
		{ echo "t_tools: example of gdscp: $line"; sed 's/^/  /' "$tmp/ex.$n"; bad=1; }
	n=$((n + 1))
done < <(examples gdscp)
check "gdscp: there are three examples" [ $n = 3 ]
for m in model config; do
	check "gdscp: $m.bin is the same" cmp "$tmp/cp/$m.bin" "$tmp/nvme/$m.bin"
done
check "gdscp: times are kept" [ ! "$tmp/nvme/config.bin" -nt "$tmp/cp/config.bin" ]
sum=$(md5sum <"$tmp/cp/model.bin" | cut -d' ' -f1)
printf 'gpu md5:%s\ncpu md5:%s\nmd5sum Match!!\n' "$sum" "$sum" >"$tmp/want"
check "gdscp: the lines that scripts know" diff "$tmp/want" <(head -n 3 "$tmp/ex.0")
check "gdscp: this is not direct" grep -q '^status 3$' "$tmp/ex.2"
check "gdscp: and says why" grep -q '^Reason: R-' "$tmp/ex.2"
check "gdscp: nothing is left" [ "$(ls -A "$tmp/nvme" | wc -l)" = 2 ]

# -- gds_stats: of a process that reads for a moment and is stopped then --
"$top/sim/run" -- build/host/tools/gdsio/gdsio -f "$tmp/cp/model.bin" -d 0 -w 1 -s 1M -i 64K -I 0 \
	-x 0 -O 1 -T 60 --allow-fallback >"$tmp/gdsio" 2>&1 &
pid=$!
counted() { gds_stats -p "$pid" 2>/dev/null | grep -q '^Read: ok = [1-9]'; }
for _ in $(seq 100); do
	counted && break
	sleep 0.1
done
kill -STOP "$pid"
export PID=$pid DIR=$tmp
n=0
while IFS= read -r line; do
	bash -ec "$line" >"$tmp/ex.$n" 2>&1 ||
		{ echo "t_tools: example of gds_stats: $line"; sed 's/^/  /' "$tmp/ex.$n"; bad=1; }
	n=$((n + 1))
done < <(examples gds_stats)
check "gds_stats: there are four lines of examples" [ $n = 4 ]
check "gds_stats: it begins as scripts expect" grep -qx 'cuFile STATS VERSION : 9' "$tmp/ex.0"
check "gds_stats: the size of its requests" grep -qE '^64-128\(KiB\): [1-9][0-9]* 0$' "$tmp/ex.0"
check "gds_stats: its GPU" grep -qE '^GPU 0\(UUID: [0-9a-f]{32}\) Read: bw=' "$tmp/ex.0"
check "gds_stats: its file" grep -qE "^FILE $tmp/cp/model.bin handles=1 Read: n=[1-9]" "$tmp/ex.0"
check "gds_stats: its route" grep -qE '^ROUTE bounce Read: n=[1-9]' "$tmp/ex.0"
check "gds_stats: JSON has its file" grep -q "\"name\": \"$tmp/cp/model.bin\"" "$tmp/ex.1"
check "gds_stats: metrics of it" grep -qE \
	"^opengds_file_bytes_total\\{pid=\"$pid\",command=\"gdsio\",file=\"$tmp/cp/model.bin\",op=\"read\"\\} [1-9]" \
	"$tmp/opengds.prom"

# refused STATUS TEXT ARGUMENTS...
refused() {
	local want=$1 text=$2 is=0
	shift 2
	gds_stats "$@" </dev/null >"$tmp/said" 2>&1 || is=$?
	[ "$is" = "$want" ] && grep -qF -e "$text" "$tmp/said" && return
	echo "t_tools: gds_stats $*: status $is, wanted $want and '$text':"
	sed 's/^/  /' "$tmp/said"
	bad=1
}
refused 2 'which process?'
refused 2 'it takes a level' -p 1 -l 4
refused 2 'exclude each other' --json --live
refused 2 'it takes the number of a process' -p x
refused 1 'no process 4000000' -p 4000000
refused 1 'has no libcufile.so loaded' -p $$
refused 1 'standard output is none' --live

export TERM=xterm
# -- the live view: keys, what they show, and what it does when its process ends --
live() { # KEYS... : each some time after the one before
	(for k; do sleep 0.2; printf "$k"; done; sleep 0.2) |
		timeout 20 script -qec \
			'stty rows 24 cols 80; gds_stats --live --interval 0.1; echo "status $?"; stty -a' \
			/dev/null >"$tmp/live" 2>&1
}
live '\n' h f '\033' '\033' q
check "live: it ended by q" grep -q 'status 0' "$tmp/live"
check "live: the terminal is as before" grep -q ' echo ' "$tmp/live"
check "live: the process" grep -qE "$pid +gdsio" "$tmp/live"
check "live: routes" grep -q 'ROUTE.*R MiB/s' "$tmp/live"
check "live: histograms" grep -q 'READS.*all routes' "$tmp/live"
check "live: keys" grep -q 'q quit' "$tmp/live"
(sleep 0.6; kill -KILL "$pid") &
live '\n' '' '' '' '' '' q
check "live: the process has ended" grep -q 'it has ended: its last numbers' "$tmp/live"
{ wait "$pid"; } 2>/dev/null
refused 1 'was killed and left its statistics' -p "$pid"
check "gds_stats: what it left" bash -c "gds_stats --left -p $pid | grep -q '^Read: ok = [1-9]'"
rm -f "/dev/shm/opengds-stats.$pid"
refused 1 "no process $pid" -p "$pid"
pid=
export TERM=none
live q
check "live: an unknown terminal" grep -q "terminal type 'none' is unknown" "$tmp/live"
[ $bad = 0 ] && echo "t_tools: all is well"
exit $bad
