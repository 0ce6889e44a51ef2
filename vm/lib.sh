# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034
# Shared by the shell scripts of vm/ and tests/: where the cache is, how to fail.
# Source it; it sets `top` (the tree) and `cache`, and defines small functions.

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=${OPENGDS_CACHE:-/var/cache/opengds}

say() { printf '%s\n' "$*" >&2; }
die() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }

# need PROGRAM PACKAGE: fail with the next step when a program is missing
need() {
	command -v "$1" >/dev/null 2>&1 || die "$1 is missing: run 'make setup' (package $2)"
}

# with_lock NAME COMMAND...: run COMMAND holding a lock of the cache, so that two
# builds of one thing never run at once
with_lock() {
	local name=$1
	shift
	mkdir -p "$cache/lock"
	(
		flock 9
		"$@"
	) 9>"$cache/lock/$name"
}

# key FILE...: a short key of the content of files and of standard input
key() { cat "$@" | sha256sum | cut -c1-16; }
