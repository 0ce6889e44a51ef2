# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
# Install, use, upgrade, remove, purge, each looked at by file lists.

user='opengds opengds-libcufile0 opengds-tools opengds-dev opengds-gpu-sim'

install_user() {
	read -ra list <<<"$user"
	install_debs "${list[@]}"
}

# hello_gds as a user builds it, on the simulator: by bounce, which it says
use() {
	in_root sh -eu -c '
		cd /tmp
		gcc -o hello /usr/share/opengds/examples/hello_gds.c -D_GNU_SOURCE \
			$(gpu-sim flags) $(pkg-config --cflags --libs cufile) -lcudart
		gpu-sim run -- ./hello /root/hello.dat 64M
		rm /root/hello.dat' >"$work/out/use.log" 2>&1 || { cat "$work/out/use.log"; return 1; }
	has "$work/out/use.log" '^routes: write bounce 67108864 read bounce 67108864$' &&
		has "$work/out/use.log" '^cuFileRead: R-[A-Z-]+: .+; .+' && has "$work/out/use.log" '^verify OK: 67108864 bytes$'
}

use_static() {
	in_root sh -eu -c '
		cd /tmp
		gcc -o hellos /usr/share/opengds/examples/hello_gds.c -D_GNU_SOURCE \
			$(gpu-sim flags) -l:libcufile_static.a -lcudart -lcuda -lpthread -ldl
		gpu-sim run -- ./hellos /root/hello.dat 1M
		rm /root/hello.dat
		! ldd hellos | grep libcufile'
}

vendor_paths() {
	in_root sh -eu -c '
		/usr/local/cuda/gds/tools/gdscheck --version
		gpu-sim run -- python3 /usr/local/cuda/gds/tools/gdscheck.py -v
		gpu-sim run -- /usr/local/cuda/gds/tools/gdsio --help >/dev/null'
}

rotation() {
	echo old >"$root/var/log/opengds/app.log"
	in_root logrotate -f /etc/logrotate.d/opengds || return
	[ -s "$root/var/log/opengds/app.log.1" ] && [ ! -s "$root/var/log/opengds/app.log" ]
}

man_pages() {
	local p
	for p in man1/gdscheck.1 man1/gdsio.1 man1/gds_stats.1 man1/gdscp.1 man8/gdspatch.8 \
		man1/gpu-sim-run.1 man1/gpu-sim.1; do
		gzip -dc "$root/usr/share/man/$p.gz" | grep -q . || { echo "no man page $p"; return 1; }
	done
}

# the older release first, then ours; settings of the user stay
upgrade() {
	OLD=1 install_user || return
	[ "$(in_root dpkg-query -W -f '${Version}' opengds-libcufile0)" = "$old_version" ] || return 1
	sed -i 's/"cufile_stats": 0/"cufile_stats": 1/' "$root/etc/cufile.json"
	install_user || return
	[ "$(in_root dpkg-query -W -f '${Version}' opengds-libcufile0)" = "$version" ] || return 1
	grep -q '"cufile_stats": 1' "$root/etc/cufile.json" || { echo 'the settings were lost'; return 1; }
	use
}

# one of them alone: neither library nor tools force the other
upgrade_one() {
	OLD=1 install_user || return
	install_debs opengds-libcufile0 opengds-dev || return
	[ "$(in_root dpkg-query -W -f '${Version}' opengds-tools)" = "$old_version" ] || return 1
	use && vendor_paths
}

remove() {
	# shellcheck disable=SC2086 # words
	in_root apt-get -q -y remove $user || return
	[ -f "$root/etc/cufile.json" ] || { echo 'remove took the settings'; return 1; }
	if in_root sh -c 'command -v gdscheck || ldconfig -p | grep libcufile'; then return 1; fi
	[ ! -e "$root/usr/local/cuda" ] || { echo 'the paths of the tools are there still'; return 1; }
}

purge() {
	# shellcheck disable=SC2086 # words
	in_root dpkg --purge $user || return
	snapshot "$work/after"
	same "$work/before" "$work/after"
}

part_lifecycle() {
	new_root big || return
	rm -f "$root"/root/*
	# what they depend on is not theirs
	check apt-dependencies in_root apt-get -q -y --no-install-recommends install libncursesw6 \
		zlib1g
	snapshot "$work/before"
	check install install_user || return
	check use-bounce use
	check use-static-library use_static
	check use-vendor-paths vendor_paths
	check use-log-rotation rotation
	check use-man-pages man_pages
	check remove remove
	check purge-leaves-nothing purge
	check upgrade-keeps-settings upgrade
	check upgrade-library-alone upgrade_one
	check upgrade-purge-leaves-nothing purge
}
