# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
# `make install` below a DESTDIR, and the tarball: unpacked anywhere it builds and runs a program.

staged_install() {
	rm -rf "$work/dest"
	make -s -o setup install PREFIX=/usr/local DESTDIR="$work/dest" || return
	local f
	for f in lib/x86_64-linux-gnu/libcufile.so.0 bin/gdscheck bin/gpu-sim include/cufile.h \
		"src/opengds-nvidia-fs-$version/dkms.conf" share/man/man1/gdscheck.1; do
		[ -e "$work/dest/usr/local/$f" ] || { echo "no $f"; return 1; }
	done
	# nothing that changes how a machine boots
	[ ! -e "$work/dest/usr/local/lib/modprobe.d" ] || { echo 'it installed modprobe.d'; return 1; }
	"$work/dest/usr/local/bin/gpu-sim" run -- env LD_LIBRARY_PATH="$work/dest/usr/local/lib/x86_64-linux-gnu:$work/dest/usr/local/lib/x86_64-linux-gnu/gpu-sim" \
		"$work/dest/usr/local/bin/gdscheck" -v
}

tarball() {
	local name
	name=$(packaging/dist-tar) || return
	rm -rf "$work/unpacked"
	mkdir -p "$work/unpacked/some where"
	tar -C "$work/unpacked/some where" --strip-components=1 -xzf "$name" || return
	sha256sum "$name" >"$work/out/tar.sum"
	# the same tree gives the same bytes
	name=$(packaging/dist-tar) && sha256sum -c "$work/out/tar.sum" || return
	echo "note: $(du -k "$name" | cut -f1) KiB"
}

# in a shell of its own, as its README says
tar_runs() {
	env -i PATH="$path" HOME="$work" LC_ALL=C TMPDIR="${TMPDIR:-/tmp}" bash -eu -c '
		. "$1/env"
		cd "$2"
		cp "$1/share/opengds/examples/hello_gds.c" .
		IFS=$(printf "\n\t")
		sim=$1/lib/gpu-sim
		gcc -D_GNU_SOURCE -o hello hello_gds.c "-I$1/include" "-I$sim/include" "-L$1/lib" "-L$sim" -lcufile -lcudart -Wl,-rpath-link,"$sim"
		gpu-sim run -- ./hello data 16M
		gdscheck -v
	' tar "$work/unpacked/some where" "$work/unpacked" | tee "$work/out/tar.run"
	has "$work/out/tar.run" '^verify OK: 16777216 bytes$'
}

part_tar() {
	check make-install-destdir staged_install
	check dist-tar-reproducible tarball && check dist-tar-builds-and-runs tar_runs
}
