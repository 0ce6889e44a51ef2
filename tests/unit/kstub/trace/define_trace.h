/* SPDX-License-Identifier: GPL-2.0-only */
/* stand-in for unit tests on the host: nothing is made */
