# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034,SC2154 # sourced by guest
# 9p: the folder of the host that vm/run gives each guest for its results; nothing of it is cached.

on_variants() { echo plain; }

on_up() {
	m_dir=$OPENGDS_OUT/matrix.9p
	mkdir -p "$m_dir" || t_fail "mkdir $m_dir"
	# large reads pin what they fill, small ones are copied
	m_opts=(--lacks 'mmap,punch,unwritten' --pins)
}

on_again() { echo 3 >/proc/sys/vm/drop_caches; }
on_down() { rm -rf "$m_dir"; }
