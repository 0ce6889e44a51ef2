# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034 # sourced by guest
# FAT: no holes, every block is written.

on_variants() { echo plain; }
on_needs() { m_module vfat nls_cp437 nls_ascii; }

on_up() {
	m_tool mkfs.vfat dosfstools
	m_fs vfat "$(m_drive 0)" -F 32
	m_opts=(--lacks punch)
}

on_down() { m_down; }
