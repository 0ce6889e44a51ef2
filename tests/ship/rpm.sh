# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
# The rpms, by Debian's rpmbuild: they build, and hold what the Debian packages do.

rpm_files() {
	local f
	rm -rf "$work/rpm"
	mkdir -p "$work/rpm"
	for f in build/rpm/RPMS/*/*.rpm; do rpm -qlp "$f" 2>/dev/null; done |
		sed -E 's#^/usr/lib64/#/usr/lib/TRIPLET/#; s#\.gz$##' | sort -u >"$work/rpm/rpm"
	for f in "$work"/debs/*_"${version}"_*.deb; do
		dpkg-deb --fsys-tarfile "$f" | tar -tf - | sed 's#^\.##' | grep -v '/$'
	done | sed -E 's#^/usr/lib/[a-z0-9_]+-linux-gnu/#/usr/lib/TRIPLET/#; s#\.gz$##' | sort -u >"$work/rpm/deb"
	# a Debian package has its papers, a link of a man page, hooks of Debian's initramfs and kernels
	comm -13 "$work/rpm/rpm" "$work/rpm/deb" |
		grep -vE '^/usr/share/(doc|lintian|initramfs-tools)/|^/etc/kernel/|/man1/gpu-sim\.1$' >"$work/rpm/lacks" || :
	[ ! -s "$work/rpm/lacks" ] || { echo 'the rpms lack:'; cat "$work/rpm/lacks"; return 1; }
	echo "note: $(wc -l <"$work/rpm/rpm") files"
}

part_rpm() {
	check rpm-builds packaging/rpm/build || return
	check rpm-files rpm_files
}
