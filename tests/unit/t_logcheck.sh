#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What vm/logcheck finds in kernel logs. Fails when a line of fixtures/log/bad.log passes,
# when a rule has no line there, when a normal boot is blamed, or an exemption does too
# much or too little.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
fixtures=$top/tests/fixtures/log
bad=0

check() { "$top/vm/logcheck" "$@"; }

# expect STATUS NAME ARGS...: logcheck's status with ARGS; text on standard input
expect() {
	local want=$1 name=$2 rc=0
	shift 2
	out=$(check "$@" 2>&1) || rc=$?
	[ "$rc" = "$want" ] && return 0
	printf 'FAIL %s: status %s, wanted %s\n%s\n' "$name" "$rc" "$want" "$out"
	bad=$((bad + 1))
}

# every line of bad.log is a fault: the rules know each, and none is taken for healthy
rules=$(check --rules)
missed=$(grep -vE -e "$rules" "$fixtures/bad.log")
if [ -n "$missed" ]; then
	printf 'FAIL no rule for:\n%s\n' "$missed"
	bad=$((bad + 1))
fi
expect 1 "bad.log" "$fixtures/bad.log"
more=$(sed -n 's/.*: and \([0-9]*\) more$/\1/p' <<<"$out")
lines=$(wc -l <"$fixtures/bad.log")
if [ "$((more + 20))" != "$lines" ]; then
	echo "FAIL bad.log: $((more + 20)) faults reported, it has $lines"
	bad=$((bad + 1))
fi

while IFS= read -r rule; do
	grep -qE -e "$rule" "$fixtures/bad.log" && continue
	echo "FAIL no line of bad.log for the rule '$rule'"
	bad=$((bad + 1))
done <<<"$rules"

for log in "$fixtures"/good-*.log; do
	expect 0 "${log##*/}" "$log"
	expect 0 "${log##*/} on standard input" - <"$log"
done

# a serial console ends its lines with CR LF, a crash may leave NULs
expect 1 "CR LF" < <(printf 'a\r\nWARNING: CPU: 0\r\nb\r\n')
expect 1 "NUL" < <(printf 'x\000\nBUG: bad\n')
expect 0 "empty" </dev/null

# exemptions are per line, and add up
two='nvme0n1: I/O Cmd(0x2) @ LBA 8 (sct 0x2 / sc 0x81)
critical medium error, dev nvme0n1, sector 8'
expect 1 "nothing exempt" <<<"$two"
expect 1 "one of two exempt" --expect-log 'critical medium error' <<<"$two"
expect 0 "both exempt" --expect-log 'critical medium error' --expect-log='sct 0x2 / sc 0x81' \
	<<<"$two"
expect 1 "another regex" --expect-log 'DMAR' <<<"$two"
expect 2 "no regex" --expect-log '(' <<<"$two"
expect 2 "empty regex" --expect-log '' <<<"$two"
expect 2 "no value" --expect-log
expect 2 "unknown option" --nonsense
expect 2 "no such file" /nonexistent/log

# the fault is shown with its place and with what follows
expect 1 "context" < <(printf 'fine\nWARNING: CPU: 0\n  RIP: here\n')
case $out in
*"log:2:WARNING: CPU: 0"*"RIP: here"*) ;;
*) printf 'FAIL output without place or context:\n%s\n' "$out"; bad=$((bad + 1)) ;;
esac

[ "$bad" = 0 ] || { echo "$bad failed"; exit 1; }
