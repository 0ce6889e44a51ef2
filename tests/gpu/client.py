# SPDX-License-Identifier: MIT
"""What the tests with Python clients share: a line a check, and whose code a call reaches."""
import os
import sys


def provider(address):
    """Path of the library that holds this code; None when no file does."""
    with open("/proc/self/maps", encoding="ascii") as maps:
        for line in maps:
            first, last = (int(x, 16) for x in line.split()[0].split("-"))
            if first <= address < last:
                return os.path.realpath(line.split()[-1])
    return None


def check(text, good):
    """Print a line; the first check that fails ends the program with status 1."""
    print("  %-4s %s" % ("ok" if good else "BAD", text))
    if not good:
        sys.exit(1)


def check_provider(address, library):
    """The function at this address is the one of the library under test."""
    used = provider(address)
    check("the library in use is the one under test: %s" % used,
          used == os.path.realpath(library))
