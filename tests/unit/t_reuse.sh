#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Guards that GPU memory which is freed and given out again at the same address is never taken for
# what was there before, with its registration left behind or not, by several threads, of cuMemAlloc
# and of cuMemCreate; and that
# memory that was read into is the driver's again as soon as it is freed. Fails on a wrong byte,
# on one beside a request, on a registration that is refused for the sake of an earlier life, and
# when 90 % of the memory are not there to be taken again. OPENGDS_LONG=1: ten minutes of it, by
# hand (the runner stops a test after five).
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
tmp=$(mktemp -d "${TMPDIR:-/tmp}/t_reuse.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
export CUFILE_ENV_PATH_JSON=/dev/null CUFILE_LOGFILE_PATH=$tmp/cufile.log
seconds=3
[ -z "${OPENGDS_LONG:-}" ] || seconds=600
for vmm in '' --vmm; do
	GPU_SIM_DELAY_US=20 GPU_SIM_HOST_MB=128 sim/run -- build/host/tests/clients/cufile_reuse \
		--dir "$tmp" --threads 4 --seconds "$seconds" --seed "${T_SEED:-$RANDOM}" $vmm || {
		tail -n 5 "$tmp/cufile.log" >&2 2>/dev/null
		exit 1
	}
	[ "$seconds" != 3 ] || seconds=2
done
