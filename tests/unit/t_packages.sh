#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Guards what needs no package to be built: each file that is shipped is in one package, none lies
# in a place of the vendor's, the scripts take away what they made, the default cufile.json changes
# nothing, the hooked driver is built from the kernel's own source or not at all, and an nvme driver
# is loaded wherever our rule for it got without the rest. Fails when a file is in no package or in
# two, when one that was there is changed, when one is left behind.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
tmp=$(mktemp -d "${TMPDIR:-/tmp}/t_packages.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
bad=0

fail() { echo "t_packages: $*" >&2; bad=1; }

# -- one list, and who has what of it --
packaging/install --list --system --build build/host >"$tmp/list" 2>"$tmp/err" ||
	fail "packaging/install --list: $(cat "$tmp/err")"
prefix=$(sed -n 's#^\(.*\)/bin/gdscheck$#\1#p' "$tmp/list")
[ -n "$prefix" ] || fail 'no gdscheck in the list'
sed "s#^$prefix/#/usr/#; s#^/##" "$tmp/list" >"$tmp/files"
[ "$(wc -l <"$tmp/files")" -gt 100 ] || fail "only $(wc -l <"$tmp/files") files are shipped"

for f in debian/*.install; do
	p=$(basename "$f" .install)
	while IFS= read -r pattern; do
		case $pattern in '#'* | '') continue ;; esac
		# as dh_install: * does not cross folders, a folder is all below it
		re="^$(sed 's/[.]/\\./g; s#\*#[^/]*#g' <<<"$pattern")(/|\$)"
		if ! grep -E "$re" "$tmp/files" | sed "s/\$/ $p/" >>"$tmp/owned"; then
			fail "$f: '$pattern' is no file that is shipped"
		fi
	done <"$f"
done
# debian/rules divides these
sed -n 's#^usr/share/man/man3/.*#& opengds-dev#p; s#^usr/share/man/man[57]/.*#& opengds-libcufile0#p' \
	"$tmp/files" >>"$tmp/owned"
sort -u "$tmp/owned" -o "$tmp/owned"
while IFS= read -r f; do
	n=$(grep -cF "$f " "$tmp/owned")
	case $n in
	1) ;;
	0) fail "$f is in no package" ;;
	*) fail "$f is in $n packages: $(grep -F "$f " "$tmp/owned" | cut -d' ' -f2 | tr '\n' ' ')" ;;
	esac
done <"$tmp/files"

# -- places of the vendor's packages --
while IFS= read -r f; do
	case $f in
	usr/local/* | opt/* | etc/ld.so.conf.d/* | etc/alternatives/* | usr/src/nvidia-* | \
		usr/lib/modprobe.d/nvidia* | usr/lib/*/libcufile_rdma* | usr/lib/*/libcuda.so* | \
		usr/lib/*/libcudart.so*)
		case $f in
		usr/lib/*/gpu-sim/*) ;;
		*) fail "$f is a place of the vendor's" ;;
		esac
		;;
	esac
done <"$tmp/files"

# -- versions: one --
version=$(sed -n "s/^  version: '\(.*\)',$/\1/p" meson.build)
grep -qx "opengds ($version) .*" <(head -n 1 debian/changelog) || fail "debian/changelog is not of $version"
grep -qE "^Version: +$version\$" packaging/rpm/opengds.spec || fail "opengds.spec is not of $version"

# -- the vendor's paths of the tools --
DPKG_ROOT=$tmp/root
export DPKG_ROOT
mine=/usr/lib/opengds/cuda
mkdir -p "$DPKG_ROOT$mine/gds/tools" "$DPKG_ROOT/etc/alternatives" "$DPKG_ROOT/var/lib/dpkg/alternatives" \
	"$DPKG_ROOT/var/log" "$DPKG_ROOT/usr/local"
for t in gdscheck gdsio gdsio_verify gds_stats gdscp gdscheck.py; do : >"$DPKG_ROOT$mine/gds/tools/$t"; done
sed 's#@PREFIX@#/usr#g' packaging/tools/cuda-paths >"$DPKG_ROOT/usr/lib/opengds/cuda-paths"
chmod +x "$DPKG_ROOT/usr/lib/opengds/cuda-paths"

# snapshot: names, kinds, targets and contents below the root
snapshot() {
	(cd "$DPKG_ROOT" && find . \( -type f -printf '%p %s ' -exec sha256sum '{}' \; \) -o \
		\( -type l -printf '%p -> %l\n' \) -o -printf '%p %y\n' | grep -v alternatives.log | sort)
}

# script PACKAGE NAME ARGUMENT...: a maintainer script, if there is one
script() {
	local f=debian/$1.$2
	shift 2
	[ ! -f "$f" ] || sed "s/#VERSION#/$version/g; /^#DEBHELPER#/d" "$f" | sh -s -- "$@" >"$tmp/out" 2>&1 ||
		fail "$f $*: $(tail -n 3 "$tmp/out")"
}

# reachable PATH: it leads to a file of ours, by links seen from the root
reachable() {
	local p=$1 l n=0
	while [ $n -lt 8 ]; do
		case $p in "$mine"/*) [ -e "$DPKG_ROOT$p" ]; return ;; esac
		# the first link on the way
		l='' rest=$p
		while [ -n "$rest" ] && [ -z "$l" ]; do
			head=${p%"$rest"}
			if [ -n "$head" ] && [ -L "$DPKG_ROOT$head" ]; then
				l=$(readlink "$DPKG_ROOT$head")
				p=$l$rest
				break
			fi
			next=${rest#/}
			case $next in */*) rest=/${next#*/} ;; *) rest='' ;; esac
		done
		if [ -z "$l" ]; then
			[ -L "$DPKG_ROOT$p" ] || return 1
			p=$(readlink "$DPKG_ROOT$p")
		fi
		n=$((n + 1))
	done
	return 1
}

# round NAME: installs the tools' paths twice, looks, removes them: all is as it was
round() {
	local before after
	before=$(snapshot)
	script opengds-tools postinst configure
	script opengds-tools postinst triggered /usr/local
	for t in gdscheck gdsio gdscheck.py; do
		reachable "/usr/local/cuda/gds/tools/$t" || fail "$1: no /usr/local/cuda/gds/tools/$t"
	done
	[ -z "${2:-}" ] || "$2"
	script opengds-tools prerm remove
	script opengds-tools postrm purge
	after=$(snapshot)
	[ "$before" = "$after" ] || fail "$1: left or changed: $(diff <(echo "$before") <(echo "$after") | grep '^[<>]')"
}
round 'no CUDA'
# a toolkit without the tools, as the vendor's packages lay it out
mkdir -p "$DPKG_ROOT/usr/local/cuda-12.8/lib64"
echo x >"$DPKG_ROOT/usr/local/cuda-12.8/lib64/libcudart.so.12"
ln -s /usr/local/cuda-12.8 "$DPKG_ROOT/etc/alternatives/cuda.vendor"
update-alternatives --root "$DPKG_ROOT" --quiet --install /usr/local/cuda cuda /usr/local/cuda-12.8 128
kept() {
	[ "$(readlink "$DPKG_ROOT/etc/alternatives/cuda")" = /usr/local/cuda-12.8 ] ||
		fail 'the toolkit is no longer the alternative'
}
round 'a toolkit without tools' kept
# ... and with one of them: it is the vendor's, and stays
mkdir -p "$DPKG_ROOT/usr/local/cuda-12.8/gds/tools"
echo vendor >"$DPKG_ROOT/usr/local/cuda-12.8/gds/tools/gdsio_verify"
theirs() {
	[ "$(cat "$DPKG_ROOT/usr/local/cuda-12.8/gds/tools/gdsio_verify")" = vendor ] ||
		fail 'a file of the vendor was changed'
	[ ! -L "$DPKG_ROOT/usr/local/cuda-12.8/gds/tools/gdsio_verify" ] || fail 'a file of the vendor was replaced'
}
round "the vendor's tool" theirs
# one that goes before us leaves its folder, since we are in it
before=$(snapshot)
mkdir -p "$DPKG_ROOT/usr/local/cuda-13.0/lib64"
echo x >"$DPKG_ROOT/usr/local/cuda-13.0/lib64/x"
script opengds-tools postinst configure
rm -r "$DPKG_ROOT/usr/local/cuda-13.0/lib64"
script opengds-tools postinst triggered /usr/local
[ ! -e "$DPKG_ROOT/usr/local/cuda-13.0" ] || fail 'the folder of a toolkit that went is there still'
script opengds-tools prerm remove
after=$(snapshot)
[ "$before" = "$after" ] || fail "a toolkit that went: $(diff <(echo "$before") <(echo "$after") | grep '^[<>]')"

# -- purge: whatever the scripts of packages name as state is gone --
grep -hoE '/(var/(lib|log)|etc)/opengds[a-z/-]*' packaging/nvme-hook/* packaging/tools/* packaging/dkms/* \
	debian/*.dirs debian/*.post* debian/*.pre* | sed 's#/$##' | sort -u >"$tmp/state"
sed -nE 's#^(var/(lib|log)/opengds[a-z/-]*).*#/\1#p' debian/*.dirs >>"$tmp/state"
sort -u "$tmp/state" -o "$tmp/state"
before=$(snapshot)
while IFS= read -r f; do
	case $f in
	*/log/* | */opengds-nvme-hook) mkdir -p "$DPKG_ROOT$f/6.1.0-1-amd64" && echo x >"$DPKG_ROOT$f/6.1.0-1-amd64/y" ;;
	# folders of others' names below
	*/opengds) mkdir -p "$DPKG_ROOT$f" ;;
	*) mkdir -p "$DPKG_ROOT${f%/*}" && echo x >"$DPKG_ROOT$f" ;;
	esac
done <"$tmp/state"
[ "$(wc -l <"$tmp/state")" -ge 4 ] || fail "only $(wc -l <"$tmp/state") places of state were found"
script opengds-tools prerm remove
for f in debian/*.postrm; do script "$(basename "$f" .postrm)" postrm purge; done
after=$(snapshot)
[ "$before" = "$after" ] || fail "purge left: $(diff <(echo "$before") <(echo "$after") | grep '^[<>]')"
unset DPKG_ROOT

# -- the default configuration is the library's own, and it has no complaint about it --
report() {
	local top=$PWD
	(
		cd "$tmp" || exit
		export LD_LIBRARY_PATH=$top/build/host/lib CUFILE_ENV_PATH_JSON=$1
		export CUFILE_LOGFILE_PATH=$tmp/log CUFILE_LOGGING_LEVEL=WARN
		timeout 60 "$top/sim/run" "$top/build/host/tools/gdscheck/gdscheck" -p 2>&1
	) | sed -n '/CUFILE CONFIGURATION/,/GPU INFO/p'
}
: >"$tmp/log"
echo '{}' >"$tmp/none.json"
want=$(report "$tmp/none.json")
: >"$tmp/log"
is=$(report "$PWD/packaging/conf/cufile.json")
[ "$(wc -l <<<"$want")" -gt 10 ] || fail "gdscheck -p: $want"
[ "$want" = "$is" ] || fail "cufile.json changes: $(diff <(echo "$want") <(echo "$is") | grep '^[<>]')"
! grep -E 'cufile.json' "$tmp/log" >&2 || fail 'the library has complaints about cufile.json'

# -- the source of the nvme driver: of just that kernel --
export OPENGDS_ROOT=$tmp/r
k=6.1.0-1-amd64
mkdir -p "$OPENGDS_ROOT/var/lib/dpkg" "$OPENGDS_ROOT/var/lib/opengds-nvme-hook/$k/host" "$tmp/tree/drivers/nvme/host" "$tmp/none"
printf 'Package: linux-headers-%s\nStatus: install ok installed\nArchitecture: amd64\nMaintainer: m\nVersion: 6.1.5-1\nDescription: d\n\n' \
	$k >"$OPENGDS_ROOT/var/lib/dpkg/status"
: >"$tmp/tree/drivers/nvme/host/pci.c"
: >"$OPENGDS_ROOT/var/lib/opengds-nvme-hook/$k/host/pci.c"
find_source() { sh packaging/dkms/find-source "$@" 2>"$tmp/err"; }
[ "$(find_source $k "$tmp/tree")" = "$tmp/tree/drivers/nvme/host" ] || fail "find-source: the kernel's own tree"
echo 6.1.5-1 >"$OPENGDS_ROOT/var/lib/opengds-nvme-hook/$k/version"
[ "$(find_source $k "$tmp/none")" = "$OPENGDS_ROOT/var/lib/opengds-nvme-hook/$k/host" ] || fail 'find-source: what was kept'
echo 6.1.4-1 >"$OPENGDS_ROOT/var/lib/opengds-nvme-hook/$k/version"
! find_source $k "$tmp/none" >/dev/null || fail 'find-source: takes the source of another version'
grep -q "opengds-nvme-hook fetch $k" "$tmp/err" || fail 'find-source: does not say what to do'
! find_source --check $k "$tmp/none" || fail 'find-source --check: of another version'
unset OPENGDS_ROOT

# -- the rule for nvme: an initramfs that has it without load-nvme finds its disk all the same --
rule=$(sed -n "s#@PREFIX@#$tmp/usr#g; s/^install nvme //p" packaging/nvme-hook/modprobe.conf)
mkdir -p "$tmp/bin" "$tmp/usr/lib/opengds"
printf '#!/bin/sh\necho "modprobe $*"\n' >"$tmp/bin/modprobe"
printf '#!/bin/sh\necho "load-nvme $*"\n' >"$tmp/load-nvme"
chmod +x "$tmp/bin/modprobe" "$tmp/load-nvme"
by_rule() { PATH=$tmp/bin:$PATH sh -c "${rule//\$CMDLINE_OPTS/a=1}" 2>&1; }
[ "$(by_rule)" = 'modprobe --ignore-install nvme a=1' ] ||
	fail "modprobe.conf: no nvme driver where load-nvme is missing: $(by_rule)"
mv "$tmp/load-nvme" "$tmp/usr/lib/opengds/"
[ "$(by_rule)" = 'load-nvme a=1' ] || fail "modprobe.conf: load-nvme does not choose: $(by_rule)"

# -- gdscheck.py is gdscheck --
mkdir "$tmp/py"
cp packaging/tools/gdscheck.py "$tmp/py/"
printf '#!/bin/sh\necho "$@"\nexit 7\n' >"$tmp/py/gdscheck"
chmod +x "$tmp/py"/*
ln -s py/gdscheck.py "$tmp/link.py"
[ "$(python3 "$tmp/link.py" -p 'a b')" = '-p a b' ] || fail 'gdscheck.py hands on other arguments'
python3 "$tmp/link.py" >/dev/null
[ $? = 7 ] || fail 'gdscheck.py: another status'

[ "$bad" = 0 ] && echo "t_packages: $(wc -l <"$tmp/files") files"
exit $bad
