# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034,SC2154 # sourced by guest
# vm: --nvme 2 --virtiofs SHARE
# virtiofs: a folder of the host, by QEMU's virtiofsd.

on_variants() { echo plain; }
on_needs() { m_module virtiofs; }
on_up() { m_mount virtiofs share; }
on_down() { m_down; }
