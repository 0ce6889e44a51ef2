#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The life of a mapping, all of it: spin runs kernel/nvidia-fs/mapping.pml through every order
# of events. Fails when something is used after it is freed, given back twice or never, when a
# sleeper is not woken or a path does not end; when a line of the model is never reached (then
# it proves nothing about it); and when the model's transitions are not those of the table in
# nvidia-fs.h, or what the C code does to `state` is not what the model says it does.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
model=$top/kernel/nvidia-fs/mapping.pml
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bad=0

fail() {
	printf 'FAIL %s\n' "$*"
	bad=$((bad + 1))
}

# differ WHAT A B: the lines that only one of two files has
differ() {
	sort -o "$2" "$2"
	sort -o "$3" "$3"
	[ -s "$2" ] || fail "$1: nothing was found to compare"
	cmp -s "$2" "$3" || fail "$1: $(diff "$2" "$3" | sed -n 's/^[<>] /&/p')"
}

# -- the model and the code --

# FROM TO WHO of the table: one row a transition, or `FROM, FROM -> TO   WHO, WHO; ...`
sed -n '/^ \*   from  *to  *who/,/^ \*$/p' "$top/kernel/nvidia-fs/nvidia-fs.h" | sed '1d;$d' |
	awk '{ sub(/^ \*   /, "") }
	/->/ {
		split($0, half, / -> /)
		n = split(half[1], from, /, /)
		match(half[2], /^[A-Z]+/)
		to = substr(half[2], 1, RLENGTH)
		split(substr(half[2], RLENGTH + 1), who, /[,; ]+/)
		for (i = 1; i <= n; i++) print from[i], to, who[2]
		next
	}
	{ sub(/\047.*/, "", $3); print $1, $2, $3 }' >"$tmp/table"
sed -n 's/.*CHANGE(\([^,()]*\), \([A-Z]*\), \([^)]*\)).*/\1 \2 \3/p' "$model" |
	grep -v '^from ' | sort -u >"$tmp/changes"
differ "nvidia-fs.h (<) and mapping.pml (>) have other transitions" "$tmp/table" "$tmp/changes"

# each assignment to `state` in the C code, with the function that it stands in
for f in "$top"/kernel/nvidia-fs/*.c; do
	awk '/^[a-z].*\(/ { fn = $0; sub(/\(.*/, "", fn); sub(/.*[ *]/, "", fn) }
	match($0, /->state = NVFS_[A-Z]+/) {
		print fn, substr($0, RSTART + 15, RLENGTH - 15)
	}' "$f"
done >"$tmp/code"
sed -n 's/^ \*   C: //p' "$model" >"$tmp/said"
differ "the C code (<) does to the state what mapping.pml (>) does not say" "$tmp/code" "$tmp/said"

# -- every order of events --

cd "$tmp" || exit 1
cp "$model" .
if spin -a mapping.pml && gcc -O1 -w -DSAFETY -DMEMLIM=1500 -o pan pan.c; then
	./pan -m200000 -w23
fi >out 2>&1
if ! grep -q 'errors: 0$' out || grep -q 'Search not completed' out; then
	fail "the model has a fault: $(grep -m1 '^pan:1:' out || tail -n 3 out)"
	# who did what, up to there
	[ ! -f mapping.pml.trail ] || ./pan -r -n -v 2>/dev/null | tail -n 40 | cut -c 1-110
	exit 1
fi

# What was not reached. Lines of inlines do not count: they stand in several processes, and what
# one cannot come to another does.
sed -n 's/^\tmapping.pml:\([0-9]*\), state.*/\1/p' out | sort -un | awk 'NR == FNR {
		if (/^inline/) inside = 1
		if (inside) skip[FNR] = 1
		if (/^}/) inside = 0
		next
	}
	!($1 in skip)' "$model" - >unreached
while read -r line; do
	fail "line $line of mapping.pml is never reached: $(sed -n "${line}p" "$model")"
done <unreached
[ $bad = 0 ] || exit 1
echo "$(wc -l <changes) transitions, $(sed -n 's/^ *\([0-9]*\) states, stored$/\1/p' out) states"
