#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Guards what a request costs: instructions for each cuFileRead of 4 KiB and of 64 KiB from the page
# cache, counted by callgrind on the simulated GPU (without its own), are those of
# bench/instructions, within 5 %. Fails when they are more, or less: the number is changed by a
# commit that says why. Another compiler or C library than those it was measured with gives other
# numbers: a skip.
set -euo pipefail
cd "$(dirname "$0")/../.."
table=bench/instructions
n=1000 bad=0

skip() { echo "$*"; exit 77; }
command -v valgrind >/dev/null || skip "valgrind is not installed: tools/setup"
want=$(sed -n 's/^with //p' "$table")
have="gcc-$(gcc -dumpfullversion) $(getconf GNU_LIBC_VERSION | tr ' ' -) $(uname -m)"
[ "$have" = "$want" ] || skip "the numbers of $table are those of $want, this is $have"

tmp=$(mktemp -d "${TMPDIR:-/tmp}/t_instructions.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
. bench/count.sh
head -c 1048576 /dev/urandom >"$tmp/data"

while read -r size number; do
	some=$(count "$size" "$n")
	none=$(count "$size" 0)
	each=$(((some - none + n / 2) / n))
	echo "t_instructions: a read of $size bytes: $each instructions, $number in $table"
	if [ $((each * 20)) -gt $((number * 21)) ] || [ $((each * 20)) -lt $((number * 19)) ]; then
		echo "t_instructions: more than 5 % off. When it is meant, write 'read $size $each' into $table, and in the commit why" >&2
		bad=1
	fi
done < <(sed -n 's/^read //p' "$table")
exit $bad
