#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Guards what a request costs: instructions for each cuFileRead of 4 KiB and of 64 KiB from the page
# cache, counted by callgrind on the simulated GPU (without its own), are those of
# bench/instructions, within 5 %. Fails when they are more, or less: the number is changed by a
# commit that says why. Another compiler or C library than those it was measured with gives other
# numbers: a skip.
set -euo pipefail
cd "$(dirname "$0")/../.."
table=bench/instructions
n=1000 bad=0

skip() { echo "$*"; exit 77; }
command -v valgrind >/dev/null || skip "valgrind is not installed: tools/setup"
want=$(sed -n 's/^with //p' "$table")
have="gcc-$(gcc -dumpfullversion) $(getconf GNU_LIBC_VERSION | tr ' ' -) $(uname -m)"
[ "$have" = "$want" ] || skip "the numbers of $table are those of $want, this is $have"

tmp=$(mktemp -d "${TMPDIR:-/tmp}/t_instructions.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
export CUFILE_ENV_PATH_JSON=/dev/null CUFILE_LOGFILE_PATH=$tmp/log GPU_SIM_DELAY_US=0
# the memcpy that every processor has
export GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2,-AVX512F,-AVX512VL,-ERMS,-FSRM
head -c 1048576 /dev/urandom >"$tmp/data"

# how often these look whether a copy is done, and how locks are waited for, is a matter of time
waits='^(wait_copy|cuda_event_query|enter|leave|real_now_ns|clock_gettime|_*pthread_|_*futex|_*lll_)'

# count SIZE N: instructions of the process without those of the simulator
count() {
	sim/run -- valgrind --tool=callgrind --callgrind-out-file="$tmp/out" \
		build/host/bench/calls "$tmp/data" "$1" "$2" >"$tmp/said" 2>&1 ||
		{ cat "$tmp/said" >&2; return 1; }
	awk -v waits="$waits" '
		/^c?ob=/ {
			id = $1
			sub(/^c?ob=/, "", id)
			if (NF > 1)
				name[id] = $2
			if ($1 ~ /^ob=/)
				now = id
		}
		/^c?fn=/ {
			f = $1
			sub(/^c?fn=/, "", f)
			if (NF > 1)
				fname[f] = $2
			if ($1 ~ /^fn=/)
				in_fn = f
		}
		/^calls=/ { getline; next }
		/^[-+*0-9]/ && fname[in_fn] !~ waits { sum[now] += $2 }
		END {
			for (id in sum)
				if (name[id] !~ /\/libcuda\.so/)
					all += sum[id]
			printf "%d\n", all
		}' "$tmp/out"
}

while read -r size number; do
	some=$(count "$size" "$n")
	none=$(count "$size" 0)
	each=$(((some - none + n / 2) / n))
	echo "t_instructions: a read of $size bytes: $each instructions, $number in $table"
	if [ $((each * 20)) -gt $((number * 21)) ] || [ $((each * 20)) -lt $((number * 19)) ]; then
		echo "t_instructions: more than 5 % off. When it is meant, write 'read $size $each' into $table, and in the commit why" >&2
		bad=1
	fi
done < <(sed -n 's/^read //p' "$table")
exit $bad
