// SPDX-License-Identifier: GPL-2.0-only
/* vma flags are changed through vm_flags_set() */
#include <linux/mm.h>
void probe(struct vm_area_struct *vma);
void probe(struct vm_area_struct *vma)
{
	vm_flags_set(vma, VM_DONTDUMP);
}
