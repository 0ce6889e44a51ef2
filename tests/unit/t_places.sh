#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Guards that the library needs no configuration, no module, no udev record, no /sys and no /run
# (spec section 13, number 3): batches, streams and random requests on tmpfs, on overlayfs and in a
# chroot, on the simulated GPU in host memory (tests/gpu/places). Fails on a wrong byte or an
# error in any of them; is skipped where the kernel lets none of them be made.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
tmp=$(mktemp -d "${TMPDIR:-/tmp}/t_places.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/bin"
cp -L build/host/lib/libcufile.so.0 build/host/tests/clients/cufile_{async,prop} "$tmp/bin/" || exit
timeout 250 sim/run -- tests/gpu/places "$tmp/bin" "$tmp/dir" 2M 10 >"$tmp/out" 2>&1 </dev/null
rc=$?
cat "$tmp/out"
[ "$rc" = 0 ] && grep -qE '^[1-9][0-9]* passed, 0 failed' "$tmp/out" || exit 1
for place in tmpfs overlayfs chroot; do
	grep -q "^PASS $place-async" "$tmp/out" && grep -q "^PASS $place-prop" "$tmp/out" && continue
	sed -n "s/^SKIP $place: /no $place: /p" "$tmp/out"
	exit 77
done
