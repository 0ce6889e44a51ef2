#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Guards the benches that put libraries side by side: a tiny table and a tiny load of two libraries
# on the simulated GPU come out whole, as JSON with all rounds; a library that changes one byte of
# a read, or of what it writes, fails the run and is named; one that touches a byte that nobody
# asked for as well; one that dies does not stop the others; on gVisor nothing is compared.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
tmp=$(mktemp -d "${TMPDIR:-/tmp}/t_indirect.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
bad=0
fail() { echo "t_indirect: $*" >&2; bad=1; }

bin=build/host/bench lib=build/host/lib/libcufile.so.0
for f in "$bin/indirect" "$bin/loader" "$lib"; do
	[ -e "$f" ] || { echo "t_indirect: no $f: run 'make'" >&2; exit 1; }
done
export CUFILE_ENV_PATH_JSON=/dev/null CUFILE_LOGFILE_PATH=$tmp/cufile.log GPU_SIM_DELAY_US=0
run() { sim/run -- "$bin/$1" --dir "$tmp/d" "${@:2}" >"$tmp/out" 2>"$tmp/err"; }

# a library in front of ours, that breaks one thing once in a while: BREAK of its environment
cat >"$tmp/wrap.c" <<'C'
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <cuda.h>
#include "cufile.h"

static void *sym(const char *name)
{
	static void *lib;

	if (!lib)
		lib = dlopen(getenv("WRAPPED"), RTLD_NOW);
	return dlsym(lib, name);
}
#define CALL(ret, name, params, args) \
	ret name params { return ((ret (*) params)sym(#name)) args; }
#undef cuFileDriverClose
CALL(CUfileError_t, cuFileDriverOpen, (void), ())
CALL(CUfileError_t, cuFileDriverClose_v2, (void), ())
CALL(CUfileError_t, cuFileHandleRegister, (CUfileHandle_t *h, CUfileDescr_t *d), (h, d))
CALL(void, cuFileHandleDeregister, (CUfileHandle_t h), (h))
CALL(CUfileError_t, cuFileBufRegister, (const void *p, size_t n, int f), (p, n, f))
CALL(CUfileError_t, cuFileBufDeregister, (const void *p), (p))

ssize_t cuFileRead(CUfileHandle_t h, void *p, size_t n, off_t off, off_t at)
{
	ssize_t (*f)(CUfileHandle_t, void *, size_t, off_t, off_t) = sym("cuFileRead");
	const char *what = getenv("BREAK");
	CUdeviceptr byte = (uintptr_t)p + at + n / 3;
	unsigned char c;
	ssize_t r = f(h, p, n, off, at);

	if (!strcmp(what, "read")) {
		cuMemcpyDtoH(&c, byte, 1);
		c ^= 4;
		cuMemcpyHtoD(byte, &c, 1);
	} else if (!strcmp(what, "beside")) {
		c = 0;
		cuMemcpyHtoD((uintptr_t)p + 255 * 1024, &c, 1);
	} else if (!strcmp(what, "die")) {
		abort();
	}
	return r;
}

ssize_t cuFileWrite(CUfileHandle_t h, const void *p, size_t n, off_t off, off_t at)
{
	ssize_t (*f)(CUfileHandle_t, const void *, size_t, off_t, off_t) = sym("cuFileWrite");

	/* a stretch that is not written, or nothing at all: what others wrote stays */
	if (!strcmp(getenv("BREAK"), "write"))
		return f(h, p, n / 2, off, at), (ssize_t)n;
	return !strcmp(getenv("BREAK"), "never") ? (ssize_t)n : f(h, p, n, off, at);
}
C
gcc -std=gnu11 -shared -fPIC -Iinclude -Isim/include -o "$tmp/wrap.so" "$tmp/wrap.c" \
	-Lbuild/host/sim -l:libcuda.so.1 -ldl || { fail 'the wrapper does not build'; exit 1; }
wrap() { echo "--lib other=$tmp/wrap.so,WRAPPED=$PWD/$lib,BREAK=$1"; }
tiny=(--rounds 1 --ms 5 --range 256K)

# the table, whole: two libraries, all kinds
if ! run indirect --lib "ours=$lib" --lib "again=$lib,OPENGDS_STRICT=0" --rounds 3 --ms 5 --range 256K \
	--rows buffered,direct:read,write:4K,64K:1,2 --no-best --limit 'bus=echo 30.5' \
	--json "$tmp/i.json"; then
	fail "the table: $(tail -n 5 "$tmp/err")"
fi
python3 - "$tmp/i.json" <<'P' || fail 'the JSON of the table'
import json, sys, os
j = json.load(open(sys.argv[1]))
assert j["bench"] == "indirect" and j["failed"] == 0 and j["registered"] is True
assert j["machine"]["uname_r"] == os.uname().release and j["machine"]["gpu"]
assert [l["name"] for l in j["libraries"]] == ["ours", "again"]
assert j["libraries"][0]["version"] == 1180 and len(j["libraries"][0]["sha256"]) == 64
assert j["libraries"][1]["env"] == ["OPENGDS_STRICT=0"]
assert j["limits"][0]["name"] == "bus" and j["limits"][0]["gib_s"] == 30.5
rows = [c for c in j["cells"] if not c["limit_only"]]
assert sorted((c["kind"], c["op"], c["size"], c["threads"]) for c in rows) == sorted(
    (k, o, s, t) for k in ("buffered", "direct") for o in ("read", "write")
    for s in (4096, 65536) for t in (1, 2))
for c in rows:
    who = {x["name"]: x for x in c["contestants"]}
    assert {"ours", "again", "raw"} <= set(who), who.keys()
    assert ("copy" in who) == (c["kind"] == "buffered")
    for x in who.values():
        assert len(x["rounds"]) == 3 and x["gib_s"] > 0
        for r in x["rounds"]:
            assert r["bytes"] == r["requests"] * c["size"] > 0 and r["seconds"] > 0
    for name in ("ours", "again"):
        assert who[name]["rounds"][2]["verified"] == min(
            who[name]["rounds"][2]["verified"], 262144 * c["threads"]) > 0
assert any(c["limit_only"] and c["size"] == 256 << 10 for c in j["cells"])
P
# this GPU's driver shows its memory to nobody: the table goes on without that contestant, and says so
grep -q '^store: GPU ' "$tmp/err" || fail 'it does not say why there is no store'
grep -q 'every byte of the last rounds was compared' "$tmp/out" || fail 'it does not say that it compared'
[ "$(grep -cE '^(buffered|direct) ' "$tmp/out")" = 16 ] || fail 'the table has not 16 rows'
[ -z "$(ls "$tmp/d")" ] || fail 'the data file is left behind'

# the loader
if ! run loader --lib "ours=$lib" --lib "again=$lib" --rounds 1 --size 4M --mixed --threads 1,3 \
	--kinds warm,cold,direct --json "$tmp/l.json"; then
	fail "the load: $(tail -n 5 "$tmp/err")"
fi
python3 - "$tmp/l.json" <<'P' || fail 'the JSON of the load'
import json, sys
j = json.load(open(sys.argv[1]))
assert j["bench"] == "loader" and j["failed"] == 0
assert [(c["kind"], c["threads"]) for c in j["cells"]] == [
    (k, t) for k in ("warm", "cold", "direct") for t in (1, 3)]
for c in j["cells"]:
    for x in c["contestants"]:
        for r in x["rounds"]:
            assert r["bytes"] > 3 << 20 and r["requests"] == 64
            assert r["verified"] == (0 if x["name"] == "raw" else r["bytes"])
P

# wrong bytes, in each way
for what in read beside write never; do
	op=${what/beside/read} op=${op/never/write} range=1M
	# what is not written at all may have been written by others, all of it
	[ "$what" != never ] || range=64K
	# shellcheck disable=SC2046 # words
	run indirect --lib "ours=$lib" $(wrap $what) "${tiny[@]}" --rows "buffered:$op:4K:1" --ms 1 --no-best \
		--range $range && fail "a library that breaks '$what' passes"
	grep -q '^FAILED other: WRONG BYTE' "$tmp/err" || fail "'$what' is not told: $(tail -n 3 "$tmp/err")"
done
# shellcheck disable=SC2046
run loader --lib "ours=$lib" $(wrap read) --rounds 1 --size 1M --threads 2 --kinds warm &&
	fail 'the loader passes a wrong byte'
grep -q '^FAILED other: WRONG BYTE' "$tmp/err" || fail 'the wrong byte of a load is not told'

# the wrapper as such is no fault; and a death is one, in each row, and the others go on
# shellcheck disable=SC2046
run indirect --lib "ours=$lib" $(wrap none) "${tiny[@]}" --rows buffered:read,write:4K:1 --no-best ||
	fail "a library in front of ours: $(tail -n 3 "$tmp/err")"
# shellcheck disable=SC2046
run indirect --lib "ours=$lib" $(wrap die) "${tiny[@]}" --rows buffered:read:4K,64K:1 --no-best &&
	fail 'a library that dies passes'
[ "$(grep -c '^FAILED other: its process died' "$tmp/err")" = 2 ] || fail 'a death is not told twice'
[ "$(grep -cE '^buffered .* FAILED ' "$tmp/out")" = 2 ] || fail 'the table does not go on after a death'

# gVisor: nothing is compared
OPENGDS_BENCH_UNAME=4.4.0 run indirect --lib "ours=$lib" "${tiny[@]}" --rows buffered:read:4K:1
[ $? = 3 ] && grep -q gVisor "$tmp/err" || fail 'gVisor is not refused'
OPENGDS_BENCH_UNAME=4.4.0 run indirect --lib "ours=$lib" --lib "again=$lib" "${tiny[@]}" \
	--rows buffered:read:4K:1 --no-best --no-compare || fail '--no-compare on gVisor'
grep -q ':limit' "$tmp/out" && fail '--no-compare prints ratios'
# wrong arguments
for args in "--rows buffered:read:4K" "--rows buffered:read:5000:1" "--rounds 2" "--lib nothing" \
	"--lib x=/nowhere" "--limit x=false"; do
	# shellcheck disable=SC2086
	run indirect --lib "ours=$lib" "${tiny[@]}" $args
	[ $? = 2 ] || fail "'$args' is not refused with status 2"
done
[ "$bad" = 0 ] && echo 't_indirect: tables, wrong bytes, deaths, gVisor'
exit $bad
