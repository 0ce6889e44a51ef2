#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Guards what a program sees of libcufile.so.0 before it runs: headers that compile with and
# without a CUDA installation, in C and (where there is a compiler) C++; exactly the names of
# the headers exported, each under its node; no library needed but libc; no symbol of a C
# library newer than 2.34. Fails on any difference.
set -euo pipefail
cd "$(dirname "$0")/../.."

tmp=$(mktemp -d "${TMPDIR:-/tmp}/t_library.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
lib=build/host/lib/libcufile.so.0
bad=0
fail() { echo "t_library: $*" >&2; bad=1; }

cat >"$tmp/use.c" <<'C'
#include "opengds.h"
/* the spellings of a published walk-through */
int fd_of(int fd);
int fd_of(int fd)
{
	CUfileDescr_t d = { CU_FILE_handle_TYPE_OPAQUE_FD };
	CUfileError_t e = { CU_FILE_SUCCESS };

	d.cookie = (void *)(intptr_t)fd;
	return IS_CUFILE_ERR(e.err) || IS_CUDA_ERR(e) || !CUFILE_ERRSTR(5022) ? -1 : d.handle.fd;
}
C
cp "$tmp/use.c" "$tmp/use.cc"
strict=(-Wall -Wextra -Werror -Wno-missing-field-initializers -Iinclude -c -o "$tmp/use.o")
gcc -std=c11 -D_GNU_SOURCE "${strict[@]}" -DCUFILE_NO_CUDA_H "$tmp/use.c" || fail "cufile.h without cuda.h"
gcc -std=c11 -D_GNU_SOURCE "${strict[@]}" -Isim/include "$tmp/use.c" || fail "cufile.h with cuda.h"
if g++ --version >/dev/null 2>&1; then
	g++ -std=c++11 "${strict[@]}" -Isim/include "$tmp/use.cc" || fail "cufile.h in C++"
fi

[ -e "$lib" ] || { echo "t_library: no $lib: run 'make'" >&2; exit 1; }
# names that the headers declare; macros that rename are undone, both close names exist
sed 's/^#define cuFile.*//' include/cufile.h include/opengds.h | tr '\n' ' ' |
	grep -oE '\b(cuFile|ogds_)[A-Za-z0-9_]+\(' | tr -d '(' | sort -u |
	grep -v '^ogds_reason_$' >"$tmp/declared"
nm -D --defined-only "$lib" | awk '$2 == "T" { sub(/@.*/, "", $3); print $3 }' | sort >"$tmp/exported"
diff "$tmp/declared" "$tmp/exported" >"$tmp/diff" ||
	fail "declared (<) and exported (>) names differ: $(tr '\n' ' ' <"$tmp/diff")"
nm -D --defined-only "$lib" | awk '$2 == "T" { print $3 }' >"$tmp/nodes"
if grep -vE '^(cuFile.*@@libcufile\.so\.0|ogds_.*@@OPENGDS_1)$' "$tmp/nodes"; then
	fail "names under a wrong node"
fi

needed=$(readelf -dW "$lib" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort | tr '\n' ' ')
case $needed in
'ld-linux-x86-64.so.2 libc.so.6 ' | 'libc.so.6 ') ;;
*) fail "needs more than libc: $needed" ;;
esac
[ "$(readelf -dW "$lib" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')" = libcufile.so.0 ] || fail "soname"
newest=$(nm -D "$lib" | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -n 1)
[ "$(printf '%s\n' "$newest" GLIBC_2.34 | sort -V | tail -n 1)" = GLIBC_2.34 ] ||
	fail "needs $newest, 2.34 is the limit"
[ "$bad" = 0 ] && echo "t_library: $(wc -l <"$tmp/exported") names, $needed, $newest"
exit $bad
