# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
# The packages are built, lintian has nothing to say, and none has a file of the vendor's. Those of
# an older release, for upgrades, are the same tree with tests/ship/old.patch.

# a package may own nothing where the vendor's packages and runfiles put theirs
no_vendor_paths() {
	local d bad=0
	for d in "$work"/debs/*.deb; do
		dpkg-deb --fsys-tarfile "$d" | tar -tf - | sed 's#^\./##' | grep -v '/$' |
			grep -E '^(usr/local/|opt/|etc/ld\.so\.conf\.d/|usr/src/nvidia-|usr/lib/[^/]*/(libcuda|libcudart|libcufile_rdma))' |
			sed "s#^#${d##*/}: #" >"$work/out/vendor" || :
		if [ -s "$work/out/vendor" ]; then cat "$work/out/vendor"; bad=1; fi
	done
	return $bad
}

take() {
	rm -f "$work"/debs/*.deb
	cp build/deb/*.deb build/deb-old/*.deb "$work/debs/"
	rm -f "$work"/debs/*-dbgsym_*
	echo "note: $(find "$work/debs" -name "*_${version}_*" | wc -l) packages"
}

have_packages() { compgen -G "$work/debs/*_${version}_*.deb" >/dev/null; }

part_packages() {
	check deb-builds-lintian-clean packaging/deb || return
	check deb-old-builds packaging/deb --no-lintian --out build/deb-old --version "$old_version" \
		--patch tests/ship/old.patch || return
	check deb-taken take || return
	check deb-no-file-of-the-vendor no_vendor_paths
}
