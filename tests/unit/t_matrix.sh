#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Guards the matrix of file systems: each cell of tests/matrix/cells names a variant that there is;
# matrix_prop passes on this machine, where everything goes through host memory, also under strict,
# where whole blocks are refused; and it fails for another route, another reason, an operation that
# was said to be lacked, and a byte that changed; that the page has the last result of each
# cell, and none that was of another line of the table. Fails when one of these is missed.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
tmp=$(mktemp -d "${TMPDIR:-/tmp}/t_matrix.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
export CUFILE_LOGFILE_PATH=$tmp/cufile.log GPU_SIM_HOST_MB=64
bin=build/host/tests/matrix
bad=0

fault() {
	echo "$*"
	bad=1
}

list=$(tests/matrix/run --list) || fault "tests/matrix/run --list failed"
[ "$(wc -l <<<"$list")" -ge 250 ] || fault "fewer than 250 cells"
while read -r on variant; do
	variants=$(bash -c ". tests/matrix/lib.sh; . tests/matrix/on/$on.sh; on_variants")
	grep -qxF -e "$variant" <<<"$variants" ||
		fault "tests/matrix/cells: $on has no variant $variant"
done < <(sed 's/#.*//' tests/matrix/cells | awk 'NF { print $1, $2 }' | sort -u)

# kept CELL STATUS TOOK LINE: a result of an earlier run
old=$tmp/cache/matrix/results
kept() { printf '%s\t%s\t9\t%s\t-\t40\twhy\t%s\tkey\t2026-01-02\t6.12.1\t7\n' "$@" >>"$old"; }
mkdir -p "${old%/*}"
one='ext4 ordered raw loose 6.12 nvfs -' two='ext4 ordered raw strict 6.12 nvfs -'
kept ext4/ordered/raw@6.12 FAIL - "$one"
kept ext4/ordered/raw@6.12 PASS nvfs "$one"
kept ext4/ordered/raw/strict@6.12 PASS nvfs "$two"
kept ext4/ordered/raw/strict@6.12 FAIL - "$two"
kept ext4/hole/raw@6.12 PASS cpu "ext4 hole raw loose 6.12 cpu -"
OPENGDS_CACHE=$tmp/cache tests/matrix/run --page "$tmp/page" || fault "no page"
for line in ': 1 cells right, 1 wrong' '^| ext4 ordered | nvfs | \*\*wrong\*\* |' \
	'^| ext4 hole | not run |' '2 of the results are of sources that have changed'; do
	grep -q "$line" "$tmp/page" || fault "the page has no line '$line'"
done
list=$(OPENGDS_CACHE=$tmp/cache tests/matrix/run --only '^ext4/(ordered|hole)/raw.*@6.12' \
	--missing --list | paste -sd ' ')
[ "$list" = "ext4/ordered/raw/strict@6.12 ext4/hole/raw@6.12 ext4/hole/raw/strict@6.12" ] ||
	fault "--missing has $list"

# prop STATUS TEXT OPTION...: on a file of tmpfs, which is none that a drive is known of
prop() {
	local want=$1 text=$2 status=0
	shift 2
	sim/run -- $bin/matrix_prop --file "$tmp/f" --seed "${T_SEED:-$RANDOM}" --steps 20 \
		"$@" >"$tmp/out" 2>&1 || status=$?
	if [ "$status" != "$want" ] || ! grep -q -e "$text" "$tmp/out"; then
		fault "matrix_prop $*: status $status, wanted $want and '$text'"
		sed 's/^/    /' "$tmp/out"
	fi
}

prop 0 '^took: bounce R-ROUTE-DENIED$' --route bounce --takes bounce --reason R-ROUTE-DENIED \
	--keep "$tmp/kept"
$bin/matrix_file check "$tmp/f" "$tmp/kept" || fault "what was kept is not the file's"
printf '\1\2\3' | dd of="$tmp/f" bs=1 seek=5 conv=notrunc status=none
$bin/matrix_file check "$tmp/f" "$tmp/kept" 2>/dev/null && fault "a changed file passes"
prop 0 '^took: none R-ROUTE-DENIED$' --route bounce --takes none --reason R-ROUTE-DENIED --strict
prop 1 '^BAD .*took bounce' --route bounce --takes nvfs
prop 1 '^BAD .*the reason is R-ROUTE-DENIED, expected R-HOLE' --route bounce --takes bounce --reason R-HOLE
prop 1 '^BAD .*punch is there' --route bounce --takes bounce --reason R-ROUTE-DENIED --lacks punch
prop 1 '^BAD .*took none' --route bounce --takes bounce --reason R-ROUTE-DENIED --strict
$bin/matrix_file make "$tmp/f" 300000 5
printf x | dd of="$tmp/f" bs=1 seek=250000 conv=notrunc status=none
prop 1 '^BAD .*GPU memory: byte 250000 of the request' --route bounce --takes bounce \
	--reason R-ROUTE-DENIED --made 5
exit $bad
