#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Guards that the library serves its known clients: each tests/clients/cl_*.c makes one client's
# calls with its habits, here on host memory in place of a GPU. Fails when a client gets a wrong
# byte, a short count, or another code than it can live with, and when a client was not run.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
tmp=$(mktemp -d "${TMPDIR:-/tmp}/t_clients.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
bad=0 n=0

printf '{ "properties": { "allow_compat_mode": true } }\n' >"$tmp/cufile.json"
export CUFILE_ENV_PATH_JSON=$tmp/cufile.json CUFILE_LOGFILE_PATH=$tmp/cufile.log
for src in tests/clients/cl_*.c; do
	name=$(basename "$src" .c)
	timeout 60 sim/run "build/host/tests/clients/$name" "$tmp/data" >"$tmp/out" 2>&1 </dev/null
	if [ $? != 0 ] || ! grep -qx "$name: ok" "$tmp/out"; then
		echo "t_clients: $name:" >&2
		cat "$tmp/out" >&2
		[ ! -s "$tmp/cufile.log" ] || tail -n 5 "$tmp/cufile.log" >&2
		bad=1
	fi
	rm -f "$tmp"/data* "$tmp/cufile.log"
	n=$((n + 1))
done
[ "$n" -ge 11 ] || { echo "t_clients: $n clients, 11 are there" >&2; bad=1; }
[ "$bad" = 0 ] && echo "t_clients: $n clients"
exit $bad
