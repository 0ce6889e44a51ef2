# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
# arm64: user space cross-built, its unit tests under qemu-user, the modules compiled against
# Debian's headers. Nothing is run on an arm64 machine or kernel.

arm_apt() {
	local r=$roots/apt-arm64
	apt-get -o "Dir::Etc::sourcelist=$r/sources.list" -o Dir::Etc::sourceparts=/dev/null \
		-o "Dir::Etc::preferencesparts=$r/none" -o "Dir::State=$r/state" -o "Dir::State::status=$r/state/status" \
		-o "Dir::Cache=$r/cache" -o APT::Sandbox::User=root -o APT::Architecture=arm64 \
		-o "APT::Architectures=arm64,amd64" -q "$@"
}
arm_show() {
	local r=$roots/apt-arm64
	apt-cache -o "Dir::Etc::sourcelist=$r/sources.list" -o Dir::Etc::sourceparts=/dev/null \
		-o "Dir::State=$r/state" -o "Dir::State::status=$r/state/status" -o "Dir::Cache=$r/cache" \
		-o APT::Architecture=arm64 -o "APT::Architectures=arm64,amd64" show "$1"
}

# what programs are linked with, unpacked; the C library is that of libc6-dev-arm64-cross
arm_sysroot() {
	local r=$roots/apt-arm64 d
	fresh "$roots/arm64" arm_sysroot && return 0
	rm -rf "$roots/arm64"
	mkdir -p "$r/state/lists/partial" "$r/cache/archives/partial" "$r/none" "$roots/arm64/debs" "$roots/arm64/root"
	: >>"$r/state/status"
	"$top/vm/kernels/apt" sources | grep -E " $suite(-backports)? main\$" >"$r/sources.list"
	arm_apt update || return
	headers=$(arm_show "linux-headers-arm64/$suite-backports" |
		sed -n 's/^Depends: \(linux-headers-[^ ,]*\).*/\1/p' | head -n 1)
	common=$(arm_show "$headers" | sed -n 's/.*\(linux-headers-[0-9][^ ,]*-common\).*/\1/p' | head -n 1)
	kbuild=$(arm_show "$headers" | sed -n 's/.*\(linux-kbuild-[0-9][^ ,]*\).*/\1/p' | head -n 1)
	[ -n "$headers" ] && [ -n "$common" ] && [ -n "$kbuild" ] || { echo "headers: '$headers' '$common' '$kbuild'"; return 1; }
	# the programs of Kbuild run here
	(cd "$roots/arm64/debs" && arm_apt download "$headers" "$common" "$kbuild:amd64" \
		libjson-c-dev libjson-c5 liburing-dev liburing2 libcmocka-dev libcmocka0 \
		zlib1g-dev zlib1g libncurses-dev libncursesw6 libncurses6 libtinfo6 \
		libssl-dev libssl3 systemtap-sdt-dev) || return
	for d in "$roots"/arm64/debs/*.deb; do dpkg-deb -x "$d" "$roots/arm64/root" || return; done
	d=$roots/arm64/root/usr/src/$headers
	sed -i "s#\\([ =]\\)/usr/src/#\\1$roots/arm64/root/usr/src/#g" "$d/Makefile" || return
	echo "$headers" >"$roots/arm64/headers"
	made "$roots/arm64" arm_sysroot
}

arm_user() {
	local s=$roots/arm64/root lib=$roots/arm64/root/usr/lib/aarch64-linux-gnu
	cat >"$work/arm64.cross" <<END
[binaries]
c = 'aarch64-linux-gnu-gcc'
ar = 'aarch64-linux-gnu-ar'
strip = 'aarch64-linux-gnu-strip'
objcopy = 'aarch64-linux-gnu-objcopy'
pkgconfig = 'pkg-config'
exe_wrapper = ['qemu-aarch64-static', '-L', '/usr/aarch64-linux-gnu', '-E', 'LD_LIBRARY_PATH=$lib:$s/lib/aarch64-linux-gnu']
[properties]
pkg_config_libdir = '$lib/pkgconfig:$s/usr/share/pkgconfig'
sys_root = '$s'
[built-in options]
c_args = ['-isystem', '$s/usr/include', '-isystem', '$s/usr/include/aarch64-linux-gnu']
c_link_args = ['-L$lib', '-L$s/lib/aarch64-linux-gnu', '-Wl,-rpath-link,$lib:$s/lib/aarch64-linux-gnu']
[host_machine]
system = 'linux'
cpu_family = 'aarch64'
cpu = 'aarch64'
endian = 'little'
END
	if [ ! -f build/arm64/build.ninja ]; then
		rm -rf build/arm64
		meson setup --werror --cross-file "$work/arm64.cross" -Doptimization=1 build/arm64 || return
	fi
	ninja -C build/arm64
}

# what an emulator of programs cannot do; each with its reason
arm_cannot='
t_probes		breakpoints: qemu-user has no ptrace
'

arm_one() {
	local out=$work/out/arm64.$1
	CMOCKA_MESSAGE_OUTPUT=TAP timeout 280 qemu-aarch64-static -L /usr/aarch64-linux-gnu \
		-E "LD_LIBRARY_PATH=$roots/arm64/root/usr/lib/aarch64-linux-gnu:$roots/arm64/root/lib/aarch64-linux-gnu" \
		"build/arm64/tests/unit/$1" >"$out" 2>&1 </dev/null || return 1
	grep -q '^ok ' "$out" && ! grep -q '^not ok' "$out"
}

arm_unit() {
	local t why n=0 bad=0
	for t in $(meson test -C build/arm64 --list --no-rebuild --suite unit 2>/dev/null |
		sed -nE 's#^(.* / )?(t_[a-z0-9_]+)$#\2#p'); do
		[ -f "tests/unit/$t.c" ] || continue
		why=$(sed -n "s/^${t}[[:blank:]]*//p" <<<"$arm_cannot")
		if [ -n "$why" ]; then
			echo "SKIP $t: $why"
			continue
		fi
		n=$((n + 1))
		if ! arm_one "$t"; then
			echo "FAIL $t"
			grep -E '^not ok|^# ' "$work/out/arm64.$t" | head -n 12
			tail -n 3 "$work/out/arm64.$t"
			bad=$((bad + 1))
		fi
	done
	echo "note: $n programs"
	[ $bad = 0 ] && [ $n -gt 50 ]
}

arm_modules() {
	local headers kdir dir=$work/arm64-modules m
	local cross=(ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu-)
	headers=$(cat "$roots/arm64/headers")
	kdir=$roots/arm64/root/usr/src/$headers
	rm -rf "$dir"
	mkdir -p "$dir"
	cp -r --parents include kernel lib/rm sim/gpu "$dir/"
	for m in kernel/nvidia-fs sim/gpu; do
		sh kernel/probe.sh "$kdir" "$dir/$m/probe" "$dir/$m/probe.h" "${cross[@]}" || return
		make -C "$kdir" M="$dir/$m" "${cross[@]}" CONFIG_DEBUG_INFO_BTF_MODULES= modules || return
	done
	file_is_arm64 "$dir/kernel/nvidia-fs/nvidia-fs.ko" &&
		file_is_arm64 "$dir/sim/gpu/gpu-sim.ko" && echo "note: ${headers#linux-headers-}"
}
file_is_arm64() { [ "$(od -An -tu2 -j18 -N2 "$1" | tr -d ' ')" = 183 ]; }

part_arm64() {
	local p
	for p in aarch64-linux-gnu-gcc qemu-aarch64-static; do
		command -v "$p" >/dev/null || { skipped arm64 "no $p: tools/setup --with arm64"; return; }
	done
	vm/kernels/apt update
	check arm64-sysroot arm_sysroot || return
	check arm64-builds arm_user && check arm64-unit-tests arm_unit
	check arm64-modules-compile arm_modules
}
