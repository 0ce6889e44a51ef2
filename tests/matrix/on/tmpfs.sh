# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034 # sourced by guest
# tmpfs: no device below.

on_variants() { echo plain; }
on_up() { m_mount tmpfs tmpfs; }
# what is unmounted is gone
on_again() { :; }
on_down() { m_down; }
