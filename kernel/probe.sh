#!/bin/sh
# SPDX-License-Identifier: MIT
# Probe kernel features by compiling; no kernel version is tested anywhere.
#
#   kernel/probe.sh KDIR PROBE_DIR HEADER [MAKE-ARGS...]
#
# Each PROBE_DIR/HAVE_<X>.c is compiled on its own against KDIR; HEADER gets a line
# `#define HAVE_<X> 1` for each that compiles. All probes go through one make.
#
# A probe of a structure that no header has names it in a line ` * btf: STRUCT...`; it gets
# #defines of its layout (btf_struct.c), out of the type information of KDIR/vmlinux or, when
# KDIR is the running kernel's, of the kernel itself. A line ` * source: PATH` names a file of the
# kernel's source that has it, too: SOURCE_<path>, with a _ for each sign, is that file where the
# source is there. A probe that gets neither does not compile.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
kdir=$1 dir=$2 header=$3
shift 3
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
: >"$tmp/Kbuild"
for p in "$dir"/HAVE_*.c; do
	[ -e "$p" ] || continue
	n=$(basename "$p" .c)
	cp "$p" "$tmp/$n.c"
	echo "obj-m += $n.o" >>"$tmp/Kbuild"
done
for p in "$dir"/*.h; do [ ! -e "$p" ] || cp "$p" "$tmp/"; done

# btf: the file with the type information of this kernel
btf() {
	if [ -f "$kdir/vmlinux" ]; then
		echo "$kdir/vmlinux"
	elif [ "$(cat "$kdir/include/config/kernel.release" 2>/dev/null)" = "$(uname -r)" ]; then
		ls /sys/kernel/btf/vmlinux 2>/dev/null || :
	fi
}

# layouts: #defines for the structures that the probes name
layouts() {
	names=$(sed -n 's/^ \* btf: //p' "$tmp"/HAVE_*.c 2>/dev/null | tr '\n' ' ')
	file=$(btf)
	[ -n "$names" ] && [ -n "$file" ] || return 0
	for cc in ${HOSTCC:-} cc gcc gcc-14 clang; do
		command -v "$cc" >/dev/null || continue
		"$cc" -O1 -o "$tmp/btf_struct" "$here/btf_struct.c" || return 0
		# shellcheck disable=SC2086 # words
		"$tmp/btf_struct" "$file" $names || :
		return 0
	done
}

# sources: #defines for the files of the kernel's source that the probes name
sources() {
	sed -n 's/^ \* source: //p' "$tmp"/HAVE_*.c 2>/dev/null | sort -u | while read -r path; do
		for top in "$kdir/source" "$kdir"; do
			[ -f "$top/$path" ] || continue
			echo "#define SOURCE_$(echo "$path" | tr -c 'A-Za-z0-9\n' _) \"$top/$path\""
			break
		done
	done
}
{ layouts; sources; } >"$tmp/layouts.h" 2>"$tmp/layouts.log"

# a probe that always compiles: tells a kernel that cannot be built against from one
# that has no feature
echo '#include <linux/module.h>' >"$tmp/always.c"
echo 'obj-m += always.o' >>"$tmp/Kbuild"
{
	echo 'ccflags-y += -Werror -Wno-missing-prototypes -Wno-missing-declarations -Wno-unused'
	echo "ccflags-y += -include $tmp/layouts.h"
} >>"$tmp/Kbuild"
# objects only: modpost would ask for a licence and for symbols
objs=$(sed -n 's/^obj-m += \(.*\)/\1/p' "$tmp/Kbuild")
(cd "$tmp" && make -k -C "$kdir" M="$tmp" "$@" $objs) >"$tmp/log" 2>&1 || true
if [ ! -f "$tmp/always.o" ]; then
	cat "$tmp/log" >&2
	echo "probe.sh: nothing compiles against $kdir: are the headers of this kernel complete?" >&2
	exit 1
fi
{
	echo "/* made by kernel/probe.sh; do not edit */"
	for p in "$dir"/HAVE_*.c; do
		[ -e "$p" ] || continue
		n=$(basename "$p" .c)
		if [ -f "$tmp/$n.o" ]; then echo "#define $n 1"; else echo "/* no $n */"; fi
	done
} >"$tmp/header"
cmp -s "$tmp/header" "$header" || cp "$tmp/header" "$header"
