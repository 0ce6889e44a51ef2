# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034,SC2154
# For the parts of tests/ship: results, and roots of a fresh Debian. Sourced by run.

suite=bookworm
pass=0 fail=0 skip=0
path=/usr/sbin:/usr/bin:/sbin:/bin

# say_result WORD NAME TEXT: one line, also in the log, and in the part's own
say_result() {
	printf '%s %s%s\n' "$1" "$2" "${3:+: $3}" | tee -a "$log" ${part:+"$work/parts/$part"}
}

# still NAME: tells once a minute that it still runs; its sleep ends with it, and holds no lock
still() {
	local n=0
	trap 'kill $!; exit' TERM
	while :; do
		sleep 60 8>&- &
		wait $!
		n=$((n + 60))
		echo "...  $1 still running after $n s"
	done
}

# check NAME COMMAND...: PASS when it succeeds; else FAIL with the end of its output
check() {
	local name=$1 t0=$SECONDS rc=0 out=$work/out/$1 ticker
	shift
	still "$name" &
	ticker=$!
	"$@" >"$out" 2>&1 </dev/null || rc=$?
	kill "$ticker" 2>/dev/null
	wait "$ticker" 2>/dev/null
	if [ "$rc" = 0 ]; then
		pass=$((pass + 1))
		say_result PASS "$name" "$((SECONDS - t0)) s$(sed -n 's/^note: /, /p' "$out" | tail -n 1)"
		return 0
	fi
	fail=$((fail + 1))
	say_result FAIL "$name" "status $rc"
	tail -n 25 "$out" | tr -d '\r' | sed 's/^/     | /'
	return 1
}

skipped() {
	skip=$((skip + 1))
	say_result SKIP "$1" "$2"
}

# guest_lines WORD PREFIX FILE: each line `WORD ok|BAD NAME TEXT` that a guest printed is a check
guest_lines() {
	local word name text
	while read -r word name text; do
		if [ "$word" = ok ]; then
			pass=$((pass + 1))
			say_result PASS "$2-$name" "$text"
		else
			fail=$((fail + 1))
			say_result FAIL "$2-$name" "$text"
		fi
	done < <(sed -n "s/^$1 //p" "$3")
}

# has FILE REGEX
has() { grep -qE -- "$2" "$1" || { echo "no '$2' in $1:"; tail -n 20 "$1"; return 1; }; }
hasnt() { ! grep -nE -- "$2" "$1" || { echo "'$2' is in $1"; return 1; }; }

# -- roots: a Debian of mmdebstrap (base), one with compilers and headers on top of it (big), both
# kept in the cache for a day; on big the one of the part dkms. Each part works in a writable layer
# that is new

sources() { "$top/vm/kernels/apt" sources | grep -E " $suite(-backports)? main\$"; }

# fresh DIR FUNCTION: made today, by the function as it is now
fresh() {
	[ "$(cat "$1/.done" 2>/dev/null)" = "$(declare -f "$2" | key -)" ] &&
		[ -n "$(find "$1/.done" -mtime -1)" ]
}
made() { declare -f "$2" | key - >"$1/.done"; }

# mount_root LOWER UPPER: at $root, with proc and dev
mount_root() {
	unmount_root
	mkdir -p "$2"/{up,work} "$root"
	mount -t overlay -o "lowerdir=$1,upperdir=$2/up,workdir=$2/work" overlay "$root" || return 1
	mount -t proc proc "$root/proc" && mount --rbind /dev "$root/dev" &&
		mount --make-rslave "$root/dev" && mount -t tmpfs tmp "$root/tmp" && mount -t tmpfs run "$root/run"
}
unmount_root() { ! mountpoint -q "$root" || umount -R -l "$root"; }

lower_of() {
	case $1 in
	base) echo "$roots/base/root" ;;
	big) echo "$roots/big/up:$(lower_of base)" ;;
	dkms) echo "$work/dkms/up:$(lower_of big)" ;;
	esac
}

# new_root base|big|dkms [LAYER]: a new layer on one of them
new_root() {
	local layer=${2:-$work/layer}
	unmount_root
	rm -rf "$layer"
	mount_root "$(lower_of "$1")" "$layer" || return 1
	mkdir -p "$root/debs"
	cp "$work"/debs/*.deb "$root/debs/"
}

in_root() {
	env -i PATH="$path" HOME=/root LC_ALL=C DEBIAN_FRONTEND=noninteractive OPENGDS_TEST=1 \
		chroot "$root" "$@"
}

# module_file MODULE KERNEL: what modprobe would take in the root
module_file() { in_root modinfo -k "$2" -F filename "$1"; }

# plain_module FILE TO: of the root, as insmod takes it
plain_module() {
	case $1 in
	*.xz) xz -dc "$root$1" >"$2" ;;
	*.zst) zstd -qdc "$root$1" >"$2" ;;
	*) cp "$root$1" "$2" ;;
	esac
}

# debs NAME...: the files of these packages, as apt takes them; OLD=1: of the older release
debs() {
	local p v=$version
	[ -z "${OLD:-}" ] || v=$old_version
	for p in "$@"; do (cd "$root" && echo ./debs/"$p"_"$v"_*.deb); done
}

# install PACKAGE...
install_debs() {
	local list
	read -ra list <<<"$(debs "$@" | tr '\n' ' ')"
	in_root apt-get -q -y --no-install-recommends --allow-downgrades install "${list[@]}"
}

# snapshot FILE: every name below the root, of /etc contents, too. What apt, dpkg and ldconfig keep
# of any package is left out, and DKMS's own key, made when it first signs.
snapshot() {
	(
		cd "$root" || exit
		find . \( -path ./proc -o -path ./dev -o -path ./tmp -o -path ./run -o \
			-path ./debs -o -path ./var/lib/apt -o -path ./var/cache -o \
			-path ./var/lib/dpkg -o -path ./sys \) -prune -o -printf '%p %y %l\n' |
			grep -vE '^\./var/(log/(apt|dpkg|alternatives|bootstrap)|backups|lib/dkms/mok\.)' |
			grep -v '^\./etc/ld\.so\.cache '
		find etc -type f ! -name ld.so.cache -exec sha256sum '{}' +
	) | sort >"$1"
}
same() { diff "$1" "$2" | grep '^[<>]' && { echo 'the root is not as it was'; return 1; }; return 0; }
