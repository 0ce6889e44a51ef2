#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# nvidia-fs computes with pages of 4 KiB, so a kernel of larger ones must not build it: offsets
# would be wrong there, silently. Preprocesses main.c as for kernels of several sizes; the
# kernel's own headers are left out (-MG), the check needs none. Fails when another size passes,
# when 4 KiB does not, or when something else than the check refuses.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
bad=0

# for_pages SHIFT: status of the preprocessor, its messages in $out
for_pages() {
	out=$(gcc -M -MG -D__KERNEL__ "-DPAGE_SHIFT=$1" -I "$top/include/uapi" -I "$top/kernel/include" \
		"$top/kernel/nvidia-fs/main.c" 2>&1 >/dev/null)
}

for_pages 12 || { printf 'FAIL pages of 4 KiB are refused:\n%s\n' "$out"; bad=1; }
for shift in 13 14 15 16; do
	if for_pages $shift; then
		echo "FAIL a kernel of $((1 << (shift - 10)))-KiB pages builds nvidia-fs"
		bad=1
	elif ! grep -q 'for kernels with pages of 4 KiB; this kernel has larger ones' <<<"$out"; then
		printf 'FAIL pages of %s KiB are refused for another reason:\n%s\n' \
			$((1 << (shift - 10))) "$out"
		bad=1
	fi
done
exit $bad
