#!/bin/bash
# SPDX-License-Identifier: MIT
# kernels: 6.1 6.12 7 debug
# time: 30
# Guards what one user may have: shadow buffers and pinned GPU memory are counted per user,
# over all his processes and user namespaces; more than the limit is ENOMEM and one line that
# names user, limit and parameter; a refused or failed call counts nothing, a teardown gives
# back; another user has his own allowance, and who has CAP_SYS_RESOURCE has no limit. Fails
# case by case, each named. Also the parameters of the nodes: dev_mode, dev_gid; and of the
# log: info_enabled, dbg_enabled.
. "$(dirname "$0")/lib.sh"

t_hook_there || t_skip "no hooked nvme driver for kernel $OPENGDS_KERNEL"
t_param=/sys/module/nvidia_fs/parameters
chmod 1777 "$t_tmp"
# t_as UID COMMAND...: as that user, without capabilities; T_GROUP: his group
t_as() {
	local uid=$1
	shift
	setpriv --reuid "$uid" --regid "${T_GROUP:-$uid}" --clear-groups --inh-caps=-all "$@"
}
# t_want TEXT OUTPUT COMMAND...
t_want() {
	local text=$1 want=$2 got
	shift 2
	got=$("$@" 2>&1 | sed 's/ *$//')
	if [ "$got" = "$want" ]; then t_ok "$text"; else t_bad "$text: wanted '$want', got '$got'"; fi
}
# t_hold NAME UID PAIR...: nvfs_caps that keeps what it has until t_release NAME
t_hold() {
	local name=$t_tmp/$1 uid=$2
	shift 2
	rm -f "$name.ready" "$name.go"
	t_as "$uid" nvfs_caps --hold "$name" "$@" >"$name.out" 2>&1 &
	t_wait 30 test -e "$name.ready" || t_fail "nvfs_caps: $(cat "$name.out")"
}
t_release() {
	touch "$t_tmp/$1.go"
	wait
	t_wait 10 t_quiet || t_bad "something stays"
}
t_user() { sed -n "s/^user $1: //p" $t_proc/users; }

T_NVFS="user_max_shadow_mb=4 user_max_pinned_mb=8" t_load
t_want "shadow up to the limit, not beyond" "OK OK mmap ENOMEM" \
	t_as 1001 nvfs_caps 2M:2M 2M:2M 64K:0
t_check "the log says who, how much, and what to do" grep -qE \
	"nvidia-fs: nvfs_caps\[[0-9]+\]: user 1001 asked for 64 KiB of shadow memory, has 4096 KiB, and the limit is 4096 KiB \(-ENOMEM\): .*user_max_shadow_mb" \
	<(dmesg)
t_check "nothing is counted afterwards" t_wait 10 test -z "$(t_user 1001)"

t_hold a 1001 2M:2M 1M:0
t_check "what he has is told" test "$(t_user 1001)" = "shadow_bytes=3145728 pinned_bytes=2097152"
t_want "another process of his has the rest" "mmap ENOMEM OK mmap ENOMEM" \
	t_as 1001 nvfs_caps 2M:0 1M:0 4K:0
t_want "another user has his own" "OK OK mmap ENOMEM" t_as 1002 nvfs_caps 2M:2M 2M:2M 4K:0
t_want "root has no limit" "OK OK OK" nvfs_caps 4M:4M 4M:4M 4M:4M
if t_as 1001 unshare -U true 2>/dev/null; then
	t_want "a user namespace is no new allowance" "mmap ENOMEM OK" \
		t_as 1001 unshare -Ur nvfs_caps 2M:0 1M:0
else
	t_say "  not tried: kernel $OPENGDS_KERNEL lets no user make a user namespace"
fi
t_check "who may read the users" test "$(stat -c %a $t_proc/users)" = 400
t_release a
t_want "what was released can be had again" "OK OK" t_as 1001 nvfs_caps 2M:2M 2M:2M

t_want "pinned up to the limit, not beyond" "OK MAP ENOMEM OK" \
	t_as 1001 nvfs_caps 64K:7M 64K:2M 64K:1M
t_check "the log says so" grep -qE \
	"user 1001 asked for 2048 KiB of pinned memory, has 7168 KiB, and the limit is 8192 KiB \(-ENOMEM\): .*user_max_pinned_mb" \
	<(dmesg)
echo "-1:22" >/sys/module/gpu_sim/parameters/fault_get_pages
t_hold b 1001 64K:8M
t_check "a failed MAP counts nothing" test "$(t_user 1001)" = "shadow_bytes=65536 pinned_bytes=0"
echo 0 >/sys/module/gpu_sim/parameters/fault_get_pages
t_want "nor takes it from others" "OK" t_as 1001 nvfs_caps 64K:8M
t_release b
echo 0 >$t_param/user_max_pinned_mb
t_want "0 is no limit, at once" "OK" t_as 1001 nvfs_caps 64K:12M
echo -1 >$t_param/user_max_shadow_mb
t_want "-1 is a quarter of the memory" "OK OK" t_as 1001 nvfs_caps 16M:0 16M:0

# the log
t_lines() { dmesg | grep -cE "nvidia-fs: $1"; }
t_check "level info" grep -qx "Logging level: info" $t_proc/stats
n=$(t_lines 'nvfs_caps.*MAP: ')
echo "-1:22" >/sys/module/gpu_sim/parameters/fault_get_pages
echo 0 >$t_param/info_enabled
t_check "level warn" grep -qx "Logging level: warn" $t_proc/stats
t_want "a refused MAP" "MAP EINVAL" nvfs_caps 64K:64K
t_check "... without a line where info_enabled is 0" test "$(t_lines 'nvfs_caps.*MAP: ')" = "$n"
echo 1 >$t_param/info_enabled
t_want "a refused MAP again" "MAP EINVAL" nvfs_caps 64K:64K
t_check "... with one" test "$(t_lines 'nvfs_caps.*MAP: ')" = $((n + 1))
echo 0 >/sys/module/gpu_sim/parameters/fault_get_pages
n=$(t_lines 'dbg: ')
t_want "a MAP" "OK" nvfs_caps 64K:64K
t_check "... is no news" test "$(t_lines 'dbg: ')" = "$n"
echo 1 >$t_param/dbg_enabled
t_check "level debug" grep -qx "Logging level: debug" $t_proc/stats
t_want "a MAP" "OK" nvfs_caps 64K:64K
t_check "... is one for dbg_enabled" test "$(t_lines 'dbg: nvfs_caps.*MAP: 0x')" = 1

# how memory is pinned
t_check "auto: persistent pins" test "$(cat $t_param/use_legacy_p2p_allocation)" = N
echo 1 >$t_param/use_legacy_p2p_allocation
t_want "a MAP" "OK" nvfs_caps 64K:64K
t_check "use_legacy_p2p_allocation=1 holds for new MAPs" grep -q 'dbg: .*callback pin' <(dmesg)
t_unload

t_check "nodes are 0666 root" test "$(T_NVFS='' t_load && stat -c '%a %g' /dev/nvidia-fs0)" = "666 0"
T_NVFS="dev_mode=0660 dev_gid=1234 pin_mode=callback use_legacy_p2p_allocation=0"
t_unload
t_load
t_check "pin_mode decides" test "$(cat $t_param/use_legacy_p2p_allocation)" = Y
for n in 0 15; do
	t_check "dev_mode and dev_gid of node $n" \
		test "$(stat -c '%a %g' /dev/nvidia-fs$n)" = "660 1234"
done
t_check "dev_mode is shown in octal" test "$(cat $t_param/dev_mode)" = 0660
t_want "who is not of the group is refused" "open EACCES" t_as 1001 nvfs_caps 64K:64K
T_GROUP=1234 t_want "who is of it is not" "OK" t_as 1001 nvfs_caps 64K:64K
rmmod nvidia-fs || t_bad "rmmod nvidia-fs"
for p in dev_mode=888 dev_mode=1777 dev_mode=rw dev_gid=4294967295; do
	insmod "$OPENGDS_BUILD/nvidia-fs.ko" $p 2>/dev/null && t_bad "$p was taken"
	t_check "$p is refused, and the log says why" grep -q "nvidia-fs: ${p%%=*}=.*-EINVAL" <(dmesg | tail -3)
done
t_unload
t_done
