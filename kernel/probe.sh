#!/bin/sh
# SPDX-License-Identifier: MIT
# Probe kernel features by compiling; no kernel version is tested anywhere.
#
#   kernel/probe.sh KDIR PROBE_DIR HEADER [MAKE-ARGS...]
#
# Each PROBE_DIR/HAVE_<X>.c is compiled on its own against KDIR; HEADER gets a line
# `#define HAVE_<X> 1` for each that compiles. All probes go through one make.
set -eu
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
# a probe that always compiles: tells a kernel that cannot be built against from one
# that has no feature
echo '#include <linux/module.h>' >"$tmp/always.c"
echo 'obj-m += always.o' >>"$tmp/Kbuild"
echo 'ccflags-y += -Werror -Wno-missing-prototypes -Wno-missing-declarations -Wno-unused' >>"$tmp/Kbuild"
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
