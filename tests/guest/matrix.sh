#!/bin/bash
# SPDX-License-Identifier: MIT
# kernels: 6.12
# time: 130
# long-only: it has not passed whole yet, and takes six minutes on a busy machine
# Guards that no byte is wrong whatever lies below a file: the cells of the matrix that
# tests/matrix/short names (holes, unwritten blocks, inline, journalled, encrypted and compressed
# data, a file system of memory, files that grow, and each route on plain ext4). Fails when a byte
# of the file or of GPU memory is another than the model has, and when a request takes another
# route, or has another reason, than the table says. `make check-matrix` has all cells. T_SEED
# repeats a run.
. "$(dirname "$0")/lib.sh"

matrix=$t_top/tests/matrix
export T_SEED=${T_SEED:-$RANDOM} T_STEPS=${T_STEPS:-25}
logs=$t_tmp/logs
rm -rf "$logs" "$t_tmp/results"
grep -v '^#' "$matrix/short" | sort >"$t_tmp/short"
sed 's/#.*//' "$matrix/cells" | awk -v short="$t_tmp/short" '
	BEGIN { while ((getline name <short) > 0) want[name] = 1 }
	NF { name = $1 "/" $2 "/" $3 ($4 == "loose" ? "" : "/" $4) "@" $5; if (name in want) print }' \
	>"$t_tmp/cells"
[ "$(wc -l <"$t_tmp/cells")" = "$(wc -l <"$t_tmp/short")" ] ||
	t_fail "tests/matrix/short names cells that tests/matrix/cells has not"

# a variant that spoils the machine ends it there; the others are reported as not run
bash "$matrix/guest" "$t_tmp/cells" "$t_tmp/results" "$logs" >"$t_tmp/out" 2>&1 ||
	t_say "  tests/matrix/guest ended early: $(tail -n 3 "$t_tmp/out")"
t_say "  seed $T_SEED"
while read -r name; do
	line=$(awk -F'\t' -v n="$name" '$1 == n' "$t_tmp/results" 2>/dev/null)
	IFS=$'\t' read -r _ status secs took reason _ text <<<"$line"
	case ${status:-none} in
	PASS) t_ok "$name: $took $reason ($secs s)" ;;
	SKIP) t_bad "$name: skipped: $text" ;;
	FAIL) t_bad "$name: $text" ;;
	none) t_bad "$name: not run" ;;
	esac
done <"$t_tmp/short"
while IFS=$'\t' read -r name _ _ _ _ _ text; do t_bad "$name: $text"; done < <(
	grep -P '^unload/[^\t]*\tFAIL' "$t_tmp/results" 2>/dev/null)
t_done
