# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
# The lines of docs/ci.md, as they stand there, in a Debian that has nothing else.

ci_lines() {
	sed -n '/^    /s///p' docs/ci.md >"$work/out/ci.lines"
	[ "$(wc -l <"$work/out/ci.lines")" = 5 ] || { echo 'docs/ci.md has not five lines'; return 1; }
	rm -f "$root"/debs/*_"$old_version"_*
	cp examples/hello_gds.c "$root/debs/test.c"
	{ echo 'set -e'; cat "$work/out/ci.lines"; } >"$root/debs/ci"
	in_root sh -c 'cd /debs && exec sh ci' >"$work/out/ci.log" 2>&1 || { tail -n 30 "$work/out/ci.log"; return 1; }
	has "$work/out/ci.log" '^verify OK: 16777216 bytes$' && has "$work/out/ci.log" '^exit status [1-9]'
}

part_ci() {
	new_root base || return
	check ci-five-lines ci_lines
}
