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

# both stand in for the same packages of the vendor's, whose names differ in one word
rpm_names() {
	local f
	for f in build/rpm/RPMS/*/*.rpm; do
		rpm -qp --conflicts "$f" | sed 's/^/conflicts /'
		rpm -qp --provides "$f" | grep -E '(-1[23]-[0-9]|^nvidia-gds|^nvidia-fs[a-z-]*) = ' | sed 's/^/provides /'
	done 2>/dev/null | sed 's/libcufile-devel/libcufile-dev/' | sort -u >"$work/rpm/rpm.names"
	for f in "$work"/debs/*_"${version}"_*.deb; do
		dpkg-deb -f "$f" Conflicts | tr ',' '\n' | sed -nE 's/^ *([^ ]+).*/conflicts \1/p'
		dpkg-deb -f "$f" Provides | tr ',' '\n' | sed -nE 's/^ *([^ ]+) \(= (.*)\)/provides \1 = \2/p'
	done | grep -vE '^conflicts libcufile(0|-dev)$' | sort -u >"$work/rpm/deb.names"
	[ "$(grep -c libcufile-13 "$work/rpm/rpm.names")" -gt 10 ] || { echo 'the rpms name none of the vendor'"'s"; return 1; }
	# libcufile0 and libcufile-dev without a number are Debian's own
	diff "$work/rpm/rpm.names" "$work/rpm/deb.names" || { echo 'rpms (<) and Debian packages (>) differ'; return 1; }
	echo "note: $(wc -l <"$work/rpm/rpm.names") names"
}

part_rpm() {
	check rpm-builds packaging/rpm/build || return
	check rpm-files rpm_files
	check rpm-stands-in-as-the-debs rpm_names
}
