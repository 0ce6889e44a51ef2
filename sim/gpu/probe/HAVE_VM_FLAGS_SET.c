// SPDX-License-Identifier: GPL-2.0-only
/* vm_flags_set(): vma->vm_flags may not be written directly any more (6.3) */
#include <linux/mm.h>

void probe(struct vm_area_struct *vma);
void probe(struct vm_area_struct *vma)
{
	vm_flags_set(vma, VM_IO);
}
