/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * view.h - the P2PDMA pages of a mapping in its process, so that plain O_DIRECT requests go to GPU
 * memory. See view.c.
 *
 * Who has a reference of one of our pages (p2p.c), and who waits for it:
 *
 *   1      the module, since the page map was made; given back by nvfs_p2p_unmake()
 *   1      each page table entry: vm_insert_page() in the fault handler; gone with munmap, exit, or
 *          the zap of nvfs_view_quiet()
 *   1024   each request of the kernel on a page of the user (FOLL_PIN); gone when it is over
 *
 * How the pages of one mapping come to an end, whatever the reason (munmap or UNMAP of the
 * mapping, exit, the GPU memory is freed, the card's driver is unbound):
 *
 *   1. The mapping is not READY any more: the fault handler, which enters the mapping as a
 *      request does, gives no page; who is inside it leaves (nvfs_mapping.users is 0).
 *   2. nvfs_view_quiet() takes the page table entries away, in every address space: nobody can
 *      begin a request now.
 *   3. ... and waits until no page has another reference than the module's and page table entries'
 *      (of another mapping of the same memory): requests in flight are over.
 *   4. nvfs_view_end(): the drive's requests are not noted any more; the page maps may go, and
 *      the GPU memory.
 *
 * The address ranges stay with the process, without use, until it unmaps them.
 */
#ifndef NVIDIA_FS_VIEW_H
#define NVIDIA_FS_VIEW_H

#include <linux/types.h>

struct bio;
struct file;
struct nvfs_mapping;
struct nvfs_ogds_pages;
struct vm_area_struct;

int nvfs_view_open(struct file *file, struct nvfs_mapping *m, struct nvfs_ogds_pages *a);
void nvfs_view_close(const struct nvfs_ogds_pages *a);
int nvfs_view_mmap(struct file *file, struct vm_area_struct *vma);
void nvfs_view_mark(const struct bio *bio);
void nvfs_view_quiet(struct nvfs_mapping *m);
void nvfs_view_end(struct nvfs_mapping *m);

#endif /* NVIDIA_FS_VIEW_H */
