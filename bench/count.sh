# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154 # tmp
# Counting instructions of build/host/bench/calls on the simulated GPU, without the simulator's own.
# Sourced in the tree's root by tests/unit/t_instructions.sh and bench/growth; needs $tmp, a folder.

export CUFILE_ENV_PATH_JSON=/dev/null CUFILE_LOGFILE_PATH=$tmp/log GPU_SIM_DELAY_US=0
# the memcpy that every processor has
export GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2,-AVX512F,-AVX512VL,-ERMS,-FSRM

# how often these look whether a copy is done, and how locks are waited for, is a matter of time
waits='^(wait_copy|cuda_event_query|enter|leave|real_now_ns|clock_gettime|_*pthread_|_*futex|_*lll_)'

# count SIZE N [FILES BUFFERS]: of the process
count() {
	sim/run -- valgrind --tool=callgrind --callgrind-out-file="$tmp/out" \
		build/host/bench/calls "$tmp/data" "$@" >"$tmp/said" 2>&1 ||
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
