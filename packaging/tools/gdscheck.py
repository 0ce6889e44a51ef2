#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# The vendor's name of gdscheck, for scripts that call it. gdscheck lies beside this file.
import os
import sys

here = os.path.dirname(os.path.realpath(__file__))
os.execv(os.path.join(here, "gdscheck"), ["gdscheck"] + sys.argv[1:])
