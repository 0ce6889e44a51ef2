#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Guards that the library does what the vendor's does, case by case: results that were recorded with
# the vendor's 1.15 on a real GPU against ours on the simulated one. Fails on a difference that
# docs/differences.md does not explain with exactly these results, and on an explanation that
# does not hold any more. Then that the comparison can fail, in both ways.
set -euo pipefail
cd "$(dirname "$0")/../.."
tmp=$(mktemp -d "${TMPDIR:-/tmp}/t_vendor.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
bad=0
fail() { echo "t_vendor: $*" >&2; bad=1; }

mkdir "$tmp/bin"
for f in build/host/tests/gpu/differ/differ build/host/lib/libcufile.so.0; do
	[ -e "$f" ] || { echo "t_vendor: no $f: run 'make'" >&2; exit 1; }
	ln -s "$PWD/$f" "$tmp/bin/"
done
compare() { sim/run tests/gpu/differences "$@"; }

# ours may say more on a machine with a module: here it is without one
compare "$tmp/bin" "$tmp/w" || fail 'see above'

# a result that is another one is seen
sed 's/^open-close\t.*/open-close\topen=0 uses=7/' tests/fixtures/vendor/1.15.tsv >"$tmp/other.tsv"
compare --ours "$tmp/w/ours.tsv" "$tmp/bin" "$tmp/w2" "$tmp/other.tsv" >"$tmp/out" &&
	fail 'a changed result of the vendor is not told'
grep -q '^DIFFERENT open-close:' "$tmp/out" || fail 'a changed result is not named'
# an explained difference that is none any more is seen
{
	cat docs/differences.md
	printf '\n## D-NONE: none\n\n| case | vendor | ours |\n|---|---|---|\n| `open-close` | `a` | `b` |\n'
} >"$tmp/doc.md"
OPENGDS_DIFFERENCES=$tmp/doc.md compare --ours "$tmp/w/ours.tsv" "$tmp/bin" "$tmp/w3" >"$tmp/out" &&
	fail 'a stale explanation is not told'
grep -q '^STALE open-close:' "$tmp/out" || fail 'a stale explanation is not named'
# a case without a result fails
grep -v '^open-close' "$tmp/w/ours.tsv" >"$tmp/less.tsv"
compare --ours "$tmp/less.tsv" "$tmp/bin" "$tmp/w4" >"$tmp/out" && fail 'a lost result is not told'
exit $bad
