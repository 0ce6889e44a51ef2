#!/bin/bash
# SPDX-License-Identifier: MIT
# kernels: 6.12
# vm: --nvme 1 --gpus 1 --mem 2G --vram 1G
# vm-more: --nvme 1 --gpus 1 --mem 2G --vram 4G
# time: 100
# Guards that reads end in GPU memory through BAR1, by the GPU driver's own interface as the
# simulated card offers it: files that are cached and O_DIRECT, odd sizes and places,
# registered memory and other, small allocations that share an object, scattered pages, threads,
# memory that is freed and given out again, also most of the card's; that a driver which lies or refuses
# turns the way off, with the reason; that a card may go under a mapping. With 4 GiB of VRAM whole
# buffers are mapped, with less it is windows. Fails on a wrong byte, seen past the
# simulator, on a byte by another way than planned, on memory that stays or does not, and when a
# name, a view or a page is left.
. "$(dirname "$0")/lib.sh"

export CUFILE_LOGFILE_PATH=$t_tmp/cufile.log CUFILE_ENV_PATH_JSON=$t_tmp/cufile.json
seed=${T_SEED:-$RANDOM}
all_free() { [ "$(t_sim free_pages)" = "$(t_sim total_pages)" ]; }
nothing_named() { [ "$(t_sim rm_names)" = 0 ] && [ "$(t_sim rm_views)" = 0 ]; }
held() { grep -q held "$t_tmp/held"; }

# routes NAME...: the only ones
routes() {
	local names
	names=$(printf '"%s", ' "$@")
	printf '{ "logging": { "level": "INFO" }, "opengds": { "routes": [%s] } }\n' "${names%, }" \
		>"$CUFILE_ENV_PATH_JSON"
}

# program COMMAND...: it passes, and leaves nothing of the card's; else nothing more is tried
program() {
	local status=0
	rm -f "$CUFILE_LOGFILE_PATH"
	timeout 200 "$@" >"$t_tmp/out" 2>&1 || status=$?
	sed 's/^/  /' "$t_tmp/out"
	if [ "$status" != 0 ]; then
		tail -n 15 "$CUFILE_LOGFILE_PATH" | sed 's/^/  log:/'
		t_fail "$*: status $status"
	fi
	t_ok "$*"
	t_wait 10 nothing_named || t_fail "$*: $(t_sim rm_names) names and $(t_sim rm_views) views are left"
	t_wait 20 all_free || t_fail "$*: $(t_sim free_pages) of $(t_sim total_pages) pages are free"
}
# logged REGEX: the last program's log says so
logged() { t_check "the log has '$1'" grep -qE -- "$1" "$CUFILE_LOGFILE_PATH"; }

bar() {
	local part=$1
	shift
	program cufile_bar "$part" --file "$t_tmp/f" --seed "$seed" "$@"
}

# by_bar TEXT: the program's own count of bytes by this way is not 0
by_bar() { t_check "some of it went by bar" grep -qE '; bar [1-9]' "$t_tmp/out"; }

# nothing is poisoned: the programs put what has to change, and there is much of it
t_insmod gpu-sim poison=0
t_wait 10 test -c /dev/nvidia0 || t_fail "no /dev/nvidia0"
modprobe -q nvme || t_fail "modprobe nvme"
t_mkfs ext4 0 /mnt
reads=60 seconds=4 prop=(--triples 30 --holes 10 --max-bytes 192M)
if t_short; then
	reads=15 seconds=2 prop=(--triples 10 --holes 4 --max-bytes 48M)
fi

routes bar
bar read --reads $reads
for p in alternate random:3; do
	GPU_SIM_SCATTER=$p bar read --reads $((reads / 2)) --threads 2
done
program cufile_bar read --file /mnt/f --direct --seed "$seed" --reads $((reads / 3))
bar kept

routes bar bounce host
bar lie
logged 'proof of a mapping.*R-BAR-PROOF'
bar fault
logged 'no stores through BAR1: client: EIO.*R-BAR-NODES'
bar late
logged 'a second name for the memory: -12: not seen through BAR1'

# memory that comes and goes, any request, many threads: the short forms of tests of their own
program cufile_reuse --dir "$t_tmp" --threads 4 --seconds $seconds --seed "$seed"
program cufile_stress --dir /mnt --cards 1 --seconds $seconds --threads 16 --stop free --seed "$seed"
if ! t_debug; then
	program cufile_prop --file /mnt/prop.dat --mirror "$t_tmp/mirror" --seed "$seed" \
		"${prop[@]}" --no-direct
	by_bar
fi

# the card goes while a process has its memory mapped
routes bar
rm -f "$t_tmp/held" "$t_tmp/go"
mkfifo "$t_tmp/go"
(exec cufile_bar gone --file "$t_tmp/f") <"$t_tmp/go" >"$t_tmp/held" 2>&1 &
victim=$!
exec 9>"$t_tmp/go"
t_wait 30 held || t_fail "cufile_bar gone did not start: $(<"$t_tmp/held")"
rmmod gpu-sim 2>/dev/null && t_fail "rmmod succeeded under a mapping"
pci=$(basename "$(dirname /sys/bus/pci/drivers/gpu-sim/*/gpu_sim)")
echo "$pci" >/sys/bus/pci/drivers/gpu-sim/unbind
echo >&9
exec 9>&-
t_check "unbind under a mapping: a refusal, no crash" wait $victim
sed 's/^/  /' "$t_tmp/held"
echo "$pci" >/sys/bus/pci/drivers/gpu-sim/bind
bar read --reads 5 --threads 1

# without the interface all of it bounces
t_umount_all
rmmod gpu-sim || t_bad "rmmod gpu-sim"
t_insmod gpu-sim rm=0 poison=0
t_wait 10 test -c /dev/gpu-sim0 || t_fail "no /dev/gpu-sim0"
routes bar bounce host
program cufile_bar fault --file "$t_tmp/f" --seed "$seed"
logged "the driver's list of GPUs in /proc.*R-BAR-NODES"
rmmod nvme || t_bad "rmmod nvme"
t_unload
t_done
