#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Guards the static library: a C program links with nothing but -lcufile, on a bare compiler,
# and reads and writes; it may define any name that the library uses inside; the library
# defines the names of the API, all of them and no other, and needs the C library alone. Fails on
# any difference, and when the program does not run.
set -euo pipefail
cd "$(dirname "$0")/../.."

tmp=$(mktemp -d "${TMPDIR:-/tmp}/t_static.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
lib=build/host/lib
bad=0
fail() { echo "t_static: $*" >&2; bad=1; }

for f in libcufile.a libcufile_static.a libcufile.so.0; do
	[ -e "$lib/$f" ] || { echo "t_static: no $lib/$f: run 'make'" >&2; exit 1; }
done
nm -D --defined-only "$lib/libcufile.so.0" | awk '$2 == "T" { sub(/@.*/, "", $3); print $3 }' |
	sort >"$tmp/shared"
nm -g --defined-only "$lib/libcufile.a" | awk 'NF == 3 { print $3 }' | sort >"$tmp/static"
diff "$tmp/shared" "$tmp/static" >"$tmp/diff" ||
	fail "names of the shared (<) and the static (>) library differ: $(tr '\n' ' ' <"$tmp/diff")"
cmp -s "$lib/libcufile.a" "$lib/libcufile_static.a" || fail "libcufile_static.a is another library"
if nm -u "$lib/libcufile.a" | grep -E '_Z|urcu|GLIBCXX|json_'; then
	fail "undefined symbols of other libraries"
fi

# names that stand inside the library, and those of json-c: the program's own are not touched
cat >"$tmp/use.c" <<'C'
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "opengds.h"

int os = 7, gpu = 8, json_object_get = 9, driver_enter = 10, ranges_add = 11;

int main(int argc, char **argv)
{
	CUfileDescr_t d = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };
	char out[10000], in[10000];
	CUfileHandle_t fh;
	int version;
	size_t i;

	if (argc < 2)
		return 2;
	d.handle.fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
	for (i = 0; i < sizeof(out); i++)
		out[i] = (char)(i * 7 + i / 251);
	if (cuFileGetVersion(&version).err || cuFileHandleRegister(&fh, &d).err)
		return 3;
	if (cuFileWrite(fh, out, sizeof(out), 3, 0) != sizeof(out) ||
	    cuFileRead(fh, in, sizeof(in), 3, 0) != sizeof(in) || memcmp(in, out, sizeof(in)))
		return 4;
	cuFileHandleDeregister(fh);
	if (cuFileDriverClose().err || os + gpu + json_object_get + driver_enter + ranges_add != 45)
		return 5;
	printf("%d by %s\n", version, ogds_route_name(OGDS_ROUTE_HOST));
	return 0;
}
C
mkdir "$tmp/lib"
cp "$lib/libcufile.a" "$tmp/lib/"
flags=(-std=c11 -D_GNU_SOURCE -DCUFILE_NO_CUDA_H -Wall -Wextra -Werror)
if gcc "${flags[@]}" -Wno-missing-field-initializers -Iinclude -o "$tmp/use" "$tmp/use.c" \
	-L"$tmp/lib" -lcufile; then
	if readelf -dW "$tmp/use" | grep NEEDED | grep -vE '\[(libc\.so\.6|ld-linux-x86-64\.so\.2)\]'; then
		fail "the program needs more than the C library"
	fi
	rc=0
	CUFILE_ENV_PATH_JSON=/dev/null CUFILE_LOGFILE_PATH=$tmp/log sim/run -- "$tmp/use" "$tmp/data" \
		>"$tmp/said" || rc=$?
	[ "$rc" = 0 ] || fail "the program ended with $rc: $(tail -n 3 "$tmp/log" 2>/dev/null)"
	[ "$(cat "$tmp/said")" = "1180 by host" ] || fail "the program said '$(cat "$tmp/said")'"
else
	fail "it does not link with -lcufile alone"
fi
[ "$bad" = 0 ] && echo "t_static: $(wc -l <"$tmp/static") names"
exit $bad
