#!/bin/bash
# SPDX-License-Identifier: MIT
# vm: --topology ports --cpu max
# kernels: 7
# time: 60
# Guards that P2PDMA carriers are refused with the true reason, before a byte moves for who asks
# for direct only, and that the CPU moves the bytes right for all others: a BAR that is mapped
# write-combined, a pair of functions that the kernel does not allow (two root ports of a CPU that
# is not on its list), carriers=shadow; and that a hooked driver goes first, unless
# carriers=p2pdma says otherwise.
# Fails when a reason is another, or a byte.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_p2pdma.sh"

t_start y wc=1 ""
t_refused "write-combined BAR" "write-combined"
t_unload
t_start y "" ""
t_refused "two root ports, CPU not on the list" "no peer-to-peer transfer"
t_unload
t_start y "" carriers=shadow
t_refused "carriers=shadow" "carriers=shadow"
t_unload
t_start n "" ""
t_check "hooked driver: auto takes the hook" t_direct
t_check "... and says so" t_says "^p2pdma: not used: .*has the hook"
t_unload
t_start n "" carriers=p2pdma
t_refused "hooked driver, carriers=p2pdma" "no peer-to-peer transfer"
t_unload
t_done
