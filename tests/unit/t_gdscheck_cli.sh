#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Guards what scripts see of gdscheck: the layout of -p, -f and -v, exit statuses, and that the man
# page and docs/gdscheck.md tell all options and checks. The examples of the man page are run. Fails
# when a line that a parser looks for is missing or out of order, when the report is not that of the
# library in use, and when a read whose way nobody saw is called proven.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
top=$PWD
gdscheck=$top/build/host/tools/gdscheck/gdscheck
tmp=$(mktemp -d "${TMPDIR:-/tmp}/t_gdscheck_cli.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
bad=0

fail() { echo "t_gdscheck_cli: $*" >&2; bad=1; }

# on the simulated GPU in host memory, with our library
run() {
	(cd "$tmp" && LD_LIBRARY_PATH=$top/build/host/lib CUFILE_LOGFILE_PATH=$tmp/log \
		timeout 60 "$top/sim/run" "$gdscheck" "$@") >"$tmp/out" 2>"$tmp/err" </dev/null
}

# status WANTED WHAT...
status() {
	local want=$1 got
	shift
	run "$@"
	got=$?
	[ $got = "$want" ] || fail "gdscheck $*: status $got, not $want: $(head -n 3 "$tmp/err")"
}

head -c 10000 /dev/urandom >"$tmp/data"

# -- the platform report --
status 0 -p
grep -qv '^ ' "$tmp/out" && fail '-p: a line does not begin with a blank'
# in this order, each a whole line or its beginning
want=' GDS release version: 1.18
 nvidia_fs minimum version: 2.12
 Platform: x86_64
 ENVIRONMENT:
 CUFILE_LOGFILE_PATH :
 DRIVER CONFIGURATION:
 NVMe               : compat
 NVMeOF             : compat
 IBM Spectrum Scale : compat
 WekaFS             : compat
 --Mellanox PeerDirect :
 --rdma library        : Not Loaded (libcufile_rdma.so)
 --rdma_device_status  : Up: 0 Down: 0
 CUFILE CONFIGURATION:
 properties.use_pci_p2pdma : false
 properties.use_compat_mode : true
 properties.max_batch_io_size : 128
 properties.posix_pool_slab_size_kb : 4 1024 16384
 fs.lustre.posix_gds_min_kb: 0
 execution.max_io_threads : 4
 properties.prefer_iouring : false
 block.nvme.use_pci_p2pdma : false
 GPU INFO:
 GPU index 0
 PLATFORM INFO:
 IOMMU:
 Nvidia Driver Info Status:
 Cuda Driver Version Installed:
 Platform:
 Platform verification succeeded
 route: not proven, run --prove'
mapfile -t lines <"$tmp/out"
at=0
while IFS= read -r w; do
	while [ "$at" -lt ${#lines[@]} ] && [[ "${lines[at]}" != "$w"* ]]; do at=$((at + 1)); done
	[ "$at" -lt ${#lines[@]} ] || { fail "-p: no line '$w', or it is before another one"; break; }
	at=$((at + 1))
done <<<"$want"
[ "$at" = ${#lines[@]} ] || fail '-p: lines behind the last one'
grep -qE '^ GPU index 0 .* bar:1 bar size \(MiB\):[0-9]+ .*GDS, IOMMU State: [A-Za-z-]+$' "$tmp/out" ||
	fail '-p: the line of GPU 0'
# a title stands between rules of its own length
grep -qzP '\n =====================\n DRIVER CONFIGURATION:\n =====================\n' "$tmp/out" ||
	fail '-p: the rules of a title'

# what is printed is what the library has, not what a table says
echo '{ "execution": { "max_io_threads": 7 }, "properties": { "allow_compat_mode": false } }' >"$tmp/c.json"
CUFILE_ENV_PATH_JSON=$tmp/c.json status 1 -p
grep -qx ' Platform verification error:' "$tmp/out" || fail '-p without a module: no error'
grep -q 'driver is not loaded' "$tmp/out" || fail '-p: no text of the error'
grep -q 'verification succeeded' "$tmp/out" && fail '-p: both'
grep -qx ' NVMe               : Unsupported' "$tmp/out" || fail '-p: NVMe without any way'
sed -i 's/false/true/' "$tmp/c.json"
CUFILE_ENV_PATH_JSON=$tmp/c.json status 0 -p
grep -qx ' execution.max_io_threads : 7' "$tmp/out" || fail '-p: a configured value'

# -- a file --
status 0 -f data
[ "$(head -n 1 "$tmp/out")" = 'GDS register success' ] || fail '-f: the first line'
[ "$(sed -n 2p "$tmp/out")" = 'generating 4k read latency matrix :' ] || fail '-f: the second line'
grep -qE '^GPU [0-9a-f]{2}:[0-9a-f]{2}:[0-9a-f]{2} : [0-9]+\.[0-9]{2}\(us\) read_verification: pass$' "$tmp/out" ||
	fail '-f: the line of a GPU'
tail -n 1 "$tmp/out" | grep -q '^route: not proven, run --prove (this read took bounce: R-' ||
	fail "-f: $(tail -n 1 "$tmp/out")"
: >"$tmp/empty"
status 1 -f empty
grep -q 'empty: the file is empty' "$tmp/err" || fail '-f: an empty file'
status 1 -f nothing
grep -q 'nothing: No such file' "$tmp/err" || fail '-f: no file'

# -- versions, usage --
status 0 -v
[ "$(wc -l <"$tmp/out")" = 2 ] || fail '-v: two lines'
status 0 -vV
LD_LIBRARY_PATH='' "$gdscheck" -v >"$tmp/out" 2>"$tmp/err" && fail '-v without a library'
grep -q 'libcufile.so.0.*LD_LIBRARY_PATH' "$tmp/err" || fail '-v: where the library is looked for'
status 2 -x
status 2 -f
status 2 -p data
status 2 -v --json
status 1 --root "$tmp/nowhere"
"$gdscheck" -v >/dev/full 2>/dev/null && fail 'a full disk is not told'

# -- what the pages say --
"$gdscheck" -h >"$tmp/help"
for o in $(grep -oE '^  (-[a-zA-Z], |    )--[a-z-]+' "$tmp/help" | tr -d ','); do
	o=${o#-}
	grep -qE "Fl (\\\\&)?$o( |\$)|[|] ${o}( |\$)" man/gdscheck.1 || fail "man/gdscheck.1 has no -$o"
done
"$gdscheck" -a >"$tmp/all"
ids=$(grep -oE '^  (SKIP|OK  |WARN|FAIL)  D-[0-9]{2}  .{18}' "$tmp/all" | sed -E 's/^  .{4}  //; s/ +$//')
[ "$(wc -l <<<"$ids")" = 58 ] || fail "-a: $(wc -l <<<"$ids") checks"
rows=$(sed -nE 's/^\| (D-[0-9]{2}) \| ([^|]+) \|.*/\1  \2/p' docs/gdscheck.md)
[ "$rows" = "$ids" ] || fail "docs/gdscheck.md has not the checks in their order: $(diff <(echo "$rows") <(echo "$ids"))"

# the examples, in order, in one folder
mkdir "$tmp/bin"
cat >"$tmp/bin/gdscheck" <<END
#!/bin/sh
LD_LIBRARY_PATH=$top/build/host/lib exec $top/sim/run $gdscheck "\$@"
END
chmod +x "$tmp/bin/gdscheck"
n=0
while IFS= read -r l; do
	n=$((n + 1))
	(cd "$tmp" && CUFILE_LOGFILE_PATH=$tmp/log PATH=$tmp/bin:$PATH timeout 60 bash -c "$l") \
		>"$tmp/out" 2>&1 </dev/null
	case $? in
	0 | 3 | 4) ;;
	*) fail "example '$l': $(tail -n 3 "$tmp/out")" ;;
	esac
done < <(sed -n 's/^\.Dl //p' man/gdscheck.1)
[ "$n" -ge 8 ] || fail "$n examples in the man page"
python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$tmp/verdicts.json" || fail '--json is no JSON'
[ "$bad" = 0 ] && echo "t_gdscheck_cli: 58 checks, $n examples"
exit $bad
