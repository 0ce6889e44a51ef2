#!/bin/bash
# SPDX-License-Identifier: MIT
# time: 60
# kernels: 6.12
# Guards that a kernel without CONFIG_PCI_P2PDMA says so: auto takes the hook, P2PDMA carriers
# alone are refused before a byte moves for who asks for direct only, and the CPU moves the bytes
# right for all others. Fails when a reason is another, or a byte.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_p2pdma.sh"

t_check "an unknown word for carriers" eval \
	'! insmod "$OPENGDS_BUILD/nvidia-fs.ko" carriers=what 2>/dev/null'
t_start n "" ""
t_check "auto takes the hook" t_direct
t_check "... and says so" t_says "^driver nvme: attached"
t_check "... and why nothing else" t_says "^p2pdma: not used: .*CONFIG_PCI_P2PDMA"
t_unload
t_start n "" carriers=p2pdma
t_refused "p2pdma alone" "CONFIG_PCI_P2PDMA"
t_unload
t_start y "" ""
t_refused "no hook either" "CONFIG_PCI_P2PDMA"
t_unload
t_done
