#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The kernel's checkpatch --strict over our modules: the quick part of `make check-static`. Fails
# on a finding that kernel/static-exceptions does not argue, and on an exception without use.
exec "$(dirname "$0")/../../tools/check-static" --quick
