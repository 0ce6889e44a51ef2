// SPDX-License-Identifier: MIT
/*
 * side_store.c - the contestant that reads files straight into GPU memory, seen through BAR1: what
 * the library's route bar can reach, with nothing of the library but its client of the driver.
 */
#include <ctype.h>
#include <string.h>

#include "side_child.h"

void side_store_open(CUdevice dev)
{
	const char *step = "";
	char pci[32], *c;
	int r;

	side_cu(cu.pci(pci, sizeof(pci), dev), "cuDeviceGetPCIBusId");
	for (c = pci; *c; c++)
		*c = tolower(*c);
	r = rm_open(pci, &here.rm, &step);
	if (r)
		side_die("GPU %s: %s: %s%d", pci, step, r < 0 ? "" : "the driver's status ", r);
}

void side_store_map(struct side_worker *w)
{
	const char *step = "contents of an IPC handle";
	struct rm_memory m;
	CUipcMemHandle ipc;
	int r;

	side_cu(cu.ipc(&ipc, w->gpu), "cuIpcGetMemHandle");
	r = rm_memory_of((const unsigned char *)&ipc, &m);
	if (!r)
		r = rm_dup(here.rm, &m, &w->object, &step);
	if (!r)
		r = rm_view(here.rm, w->object, m.off, w->len, &w->view, &step);
	if (r)
		side_die("%zu bytes of GPU memory: %s: %s%d", w->len, step,
			 r < 0 ? "" : "the driver's status ", r);
	w->host = w->view.at;
}

void side_store_unmap(struct side_worker *w)
{
	rm_unview(&w->view);
	rm_drop(here.rm, w->object);
	w->host = NULL;
}
