// SPDX-License-Identifier: MIT
/* gdscp - copies files through the memory of a GPU, and proves that they are the same. */
#include "run.h"

int main(int argc, char **argv)
{
	return gdscp_run(argc, argv);
}
