#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Guards the manual pages: each name that libcufile.so.0 exports has one, whose synopsis is the
# header's declaration; mandoc has nothing to say about any page; what they name (other pages,
# constants, files, variables of the environment) is there; options that a tool's --help has are on
# its page, and the other way round; the examples of section 3 compile and run on the simulated GPU.
# Fails on any difference. t_config_man has cufile.json(5), t_gdspatch_man and t_tools have more.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
top=$PWD
tmp=$(mktemp -d "${TMPDIR:-/tmp}/t_man.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
pages=${T_MAN_PAGES:-man}	# another folder of pages: for trying a change
bad=0
fail() { echo "t_man: $*"; bad=$((bad + 1)); }

command -v mandoc >/dev/null || { echo "mandoc is not installed: run 'make setup' as root"; exit 77; }

# as they are installed, so that `.so man3/NAME.3` is found
for f in "$pages"/*.[0-9]; do
	mkdir -p "$tmp/man${f##*.}"
	cp "$f" "$tmp/man${f##*.}/"
done
cd "$tmp" || exit

# target PAGE: where a page that is only a link leads
target() { sed -n '1s/^\.so //p' "$1"; }

# -- each exported name --
names=$(grep -oE '^\s+(cuFile|ogds_)\w+' "$top/lib/libcufile.map" | tr -d '\t ')
[ "$(wc -l <<<"$names")" -ge 58 ] || fail "only $(wc -l <<<"$names") names in lib/libcufile.map"
for n in $names; do
	page=man3/$n.3
	[ -e "$page" ] || { fail "$n has no page: write man/$n.3, or '.so man3/PAGE.3' in it"; continue; }
	to=$(target "$page")
	[ -z "$to" ] || page=$to
	[ -e "$page" ] || { fail "man/$n.3 leads to $to, which is not there"; continue; }
	[ -n "$(sed -n '/^\.Sh NAME/,/^\.Nd/p' "$page" | grep -E "^\.Nm $n( ,)?$")" ] || fail "$page: NAME does not have $n"
	grep -qx "\.Fo $n" "$page" || fail "$page: SYNOPSIS does not have $n"
done
for f in man3/*.3; do
	to=$(target "$f")
	[ -z "$to" ] || [ -e "$to" ] || fail "$f leads to $to, which is not there"
	[ -n "$to" ] && continue
	for s in NAME SYNOPSIS DESCRIPTION 'IMPLEMENTATION NOTES' EXAMPLES 'SEE ALSO'; do
		grep -qx "\.Sh $s" "$f" || fail "$f has no section $s"
	done
	grep -qx '\.Ss Threads and blocking' "$f" || fail "$f says nothing of threads and blocking"
done

# -- synopses: a declaration that is not the header's does not compile beside it --
{
	echo '#include "opengds.h"'
	cat man3/*.3 | awk '
		/^\.Sh / { inside = $2 == "SYNOPSIS" }
		!inside { next }
		/^\.Ft / { type = substr($0, 5) }
		/^\.Fo / { name = $2; n = 0 }
		/^\.Fa / { a = substr($0, 5); gsub(/"/, "", a); args = n++ ? args ", " a : a }
		/^\.Fc/ { print type " " name "(" args ");" }'
} >synopsis.c
[ "$(grep -c ');$' synopsis.c)" -ge 58 ] || fail "only $(grep -c ');$' synopsis.c) declarations in the synopses"
# two inline functions and macros of the header are told of as well
sed -i '/cufileop_status_error/d' synopsis.c
gcc -std=c11 -D_GNU_SOURCE -Wall -Werror -DCUFILE_NO_CUDA_H "-I$top/include" -c -o synopsis.o synopsis.c 2>gcc ||
	{ fail "synopses and headers differ:"; sed 's/^/  /' gcc; }

# -- mandoc --
# Not counted: lines of more than 80 bytes (the tree's have 100), the order of sections, and the .Os
# of others than the BSDs. What a page refers to is looked for below: here it need not be installed.
for f in man?/*.[0-9]; do
	[ -n "$(target "$f")" ] || mandoc -T lint "$f" 2>&1
done | grep -vE 'longer than 80 bytes|out of conventional order|operating system explicitly' |
	grep -vE 'referenced manual not found|outdated mandoc\.db' >lint
[ ! -s lint ] || { fail "mandoc -T lint:"; sed 's/^/  /' lint; }
mandoc -T markdown man3/cuFileReadv.3 2>/dev/null | grep 'cuFileWritev' >/dev/null || fail "the link cuFileReadv(3) shows no text"

# -- what pages name --
system='cp:1 gdb:1 md5sum:1 perf:1 qemu-system-x86_64:1 script:1 fork:2 execve:2 open:2 fsync:2
	pread:2 pwrite:2 flock:2 dlclose:3 errno:3 make:1 chroot:8 modprobe:8 depmod:8
	dkms:8 kernel-install:8'
grep -oHE '^\.Xr [^ ]+ [0-9]' man?/*.[0-9] | sed 's/:\.Xr / /' |
	while read -r in name sec; do
	[ -e "man$sec/$name.$sec" ] || grep -qwF -- "$name:$sec" <<<"$system" ||
		echo "$in refers to $name($sec), which is no page of ours nor in the list of the system's"
done >refs
cat "$top/include/cufile.h" "$top/include/opengds.h" >headers
cat man3/*.3 man7/*.7 | grep -v '^\.Dt' | grep -oE '\b(CU_FILE|CUFILE|OGDS)_[A-Z0-9_]+\b' |
	sort -u | while read -r c; do
	grep -qw -- "$c" headers || grep -qw -- "$c" "$top/lib/config.c" || echo "$c is on a page and in no header"
done >>refs
grep -ohE '(^|[ "])(lib|facts|tests|docs|include)/[a-zA-Z0-9_./-]+[a-z0-9]' man?/*.[0-9] |
	tr -d ' "' | sort -u | while read -r f; do
	[ -e "$top/$f" ] || echo "$f is on a page and not in the tree"
done >>refs
grep -ohE '"(CUFILE|OPENGDS)_[A-Z0-9_]+"' "$top/lib/config.c" | tr -d '"' | sort -u | while read -r v; do
	grep -qw -- "$v" man5/cufile.json.5 || echo "cufile.json(5) does not have $v of the environment"
done >>refs
[ ! -s refs ] || { fail "names:"; sed 's/^/  /' refs; }

# -- options: of --help and of the page --
# on_page PAGE: options that a list of the page explains, in any list
on_page() { sed -n 's/^\.It Fl //p' "$1" | sed 's/\\&//g; s/ , Fl /\n/g; s/ , /\n/g' | awk '{ print "-" $1 }' | sort -u; }
# in_help PROGRAM: those of its help, and of what it calls help of a command
in_help() {
	{ "$1" --help || "$1" -h; [[ $1 != */gdsio ]] || "$1" sweep --help; } 2>/dev/null |
		grep -oE '(^|[ ,|[])--?[a-zA-Z][a-zA-Z0-9-]*' | grep -oE -- '--?[a-zA-Z].*' | sort -u
}
b=build/host/tools
for t in gdscheck:$b/gdscheck/gdscheck:1 gdsio:$b/gdsio/gdsio:1 vm-run:vm/run:1 \
	gdsio_verify:$b/gdsio/gdsio_verify:1 gdspatch:$b/gdspatch/gdspatch:8 \
	gds_stats:$b/gds_stats/gds_stats:1 gdscp:$b/gdscp/gdscp:1; do
	IFS=: read -r name path sec <<<"$t"
	[ -x "$top/$path" ] || { fail "no $path: run 'make'"; continue; }
	on_page "man$sec/$name.$sec" >page
	in_help "$top/$path" >help
	{
		grep -vxF -f page help | sed "s/^/$name --help has, and its page explains not: /"
		grep -vxF -f help page | sed "s/^/the page of $name explains, and --help has not: /"
	} >differ
	[ ! -s differ ] || { sed 's/^/t_man: /' differ; fail "$name: options differ"; }
done

# -- examples of section 3: each runs in a function with a file and a GPU buffer at hand --
cat >frame.h <<'C'
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cuda_runtime.h>
#include "opengds.h"
C
n=0 calls='' objects=()
for f in man3/*.3; do
	[ -z "$(target "$f")" ] || continue
	sed -n '/^\.Sh EXAMPLES/,/^\.Sh /p' "$f" | sed -n '/^\.Bd -literal/,/^\.Ed/{/^\.[BE]d/!p}' |
		sed 's/\\e/\\/g' >block
	[ -s block ] || { fail "$f has no example in a literal block"; continue; }
	n=$((n + 1))
	{
		echo '#include "frame.h"'
		echo "#line 1 \"$f\""
		echo "void example$n(const char *path, CUfileHandle_t fh, void *gpu, size_t size, CUfileError_t st);"
		echo "void example$n(const char *path, CUfileHandle_t fh, void *gpu, size_t size, CUfileError_t st)"
		echo '{'
		echo '	(void)path, (void)fh, (void)gpu, (void)size, (void)st;'
		cat block
		echo '}'
	} >"example$n.c"
	gcc -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror "-I$top/include" "-I$top/sim/include" -I. \
		-c "example$n.c" 2>gcc || { fail "the example of $f does not compile:"; sed 's/^/  /' gcc; continue; }
	objects+=("example$n.o")
	calls+="	{ \"$f\", example$n },"$'\n'
	echo "void example$n(const char *path, CUfileHandle_t fh, void *gpu, size_t size, CUfileError_t st);" >>decls.h
done
{
	cat frame.h decls.h
	echo 'static const struct { const char *page; void (*run)(const char *, CUfileHandle_t, void *, size_t, CUfileError_t); } each[] = {'
	printf '%s' "$calls"
	cat <<'C'
};
int main(int argc, char **argv)
{
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };
	CUfileError_t st = { CU_FILE_SUCCESS, 0 };
	size_t size = 1 << 20, i;
	CUfileHandle_t fh;
	void *gpu;

	descr.handle.fd = open(argv[argc - 1], O_RDWR);
	if (descr.handle.fd < 0 || cudaMalloc(&gpu, size) != cudaSuccess ||
	    cuFileHandleRegister(&fh, &descr).err != CU_FILE_SUCCESS)
		errx(1, "nothing to run the examples with");
	for (i = 0; i < sizeof(each) / sizeof(each[0]); i++) {
		printf("-- %s\n", each[i].page);
		fflush(stdout);
		ogds_handle_set_strict(fh, false);
		each[i].run(argv[argc - 1], fh, gpu, size, st);
	}
	cuFileHandleDeregister(fh);
	return cuFileDriverClose().err != CU_FILE_SUCCESS;
}
C
} >main.c
head -c 1048576 /dev/urandom >data
if gcc -std=c11 -D_GNU_SOURCE -Wall -Werror "-I$top/include" "-I$top/sim/include" -o examples main.c "${objects[@]}" \
	"-L$top/build/host/lib" -lcufile "-L$top/build/host/sim" -l:libcudart.so.13 2>gcc; then
	export CUFILE_ENV_PATH_JSON=/dev/null CUFILE_LOGFILE_PATH=$tmp/log
	LD_LIBRARY_PATH=$top/build/host/lib \
		timeout 60 "$top/sim/run" -- ./examples data >out 2>&1 ||
		{ fail "an example failed:"; tail -n 5 out log | sed 's/^/  /'; }
else
	fail "the examples do not link:"
	sed 's/^/  /' gcc
fi
[ $bad = 0 ] && echo "t_man: $(wc -l <<<"$names") names, $n examples, $(find man? -name '*.[0-9]' | wc -l) pages"
exit $((bad != 0))
