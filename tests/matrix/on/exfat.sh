# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034 # sourced by guest
# exFAT: no holes; what lies behind the written part of a file reads as zeros.

on_variants() { echo plain; }
on_needs() { m_module exfat; }

on_up() {
	m_tool mkfs.exfat exfatprogs
	m_fs exfat "$(m_drive 0)"
	# 7 can allocate without writing
	m_opts=(--lacks "punch$([[ $OPENGDS_KERNEL = *7 ]] || echo ,unwritten)")
}

on_down() { m_down; }
