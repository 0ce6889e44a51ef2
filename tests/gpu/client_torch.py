#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""torch.cuda.gds on a real GPU: what it writes is what it reads, and what the file holds.

  client_torch.py FILE LIBRARY

LIBRARY is the libcufile.so.0 that has to be the one in use; LD_PRELOAD names it, since torch's own
libraries look beside themselves before they look in LD_LIBRARY_PATH. Prints a line a check, and `torch.cuda.gds OK`; the exit status is 1 when one fails.
"""
import ctypes
import os
import sys

import torch

from client import check, check_provider

MIB = 1 << 20


def file_bytes(path, offset, size):
    with open(path, "rb") as f:
        f.seek(offset)
        return torch.frombuffer(bytearray(f.read(size)), dtype=torch.uint8)


def main():
    path, library = sys.argv[1:3]
    gds = torch.cuda.gds
    torch.manual_seed(1)
    a = torch.randint(0, 256, (64 * MIB,), dtype=torch.uint8, device="cuda")
    b = torch.randn(3 * MIB + 1024, dtype=torch.float32, device="cuda")
    f = gds.GdsFile(path, os.O_CREAT | os.O_RDWR)
    print("  torch %s" % torch.__version__)
    reached = ctypes.cast(ctypes.CDLL(None).cuFileHandleRegister, ctypes.c_void_p).value
    check_provider(reached, library)

    gds.gds_register_buffer(a.untyped_storage())
    f.save_storage(a.untyped_storage(), offset=0)
    back = torch.zeros_like(a)
    f.load_storage(back.untyped_storage(), offset=0)
    check("registered, 64 MiB: read back equal", torch.equal(a, back))
    check("registered, 64 MiB: the file holds it",
          torch.equal(file_bytes(path, 0, a.numel()), a.cpu()))
    gds.gds_deregister_buffer(a.untyped_storage())

    at = 64 * MIB + 4096
    f.save_storage(b.untyped_storage(), offset=at)
    other = torch.zeros_like(b)
    f.load_storage(other.untyped_storage(), offset=at)
    check("not registered, 12 MiB and a bit: read back equal", torch.equal(b, other))
    want = b.cpu().view(torch.uint8)
    check("not registered: the file holds it",
          torch.equal(file_bytes(path, at, want.numel()), want))
    check("what was before is as before", torch.equal(file_bytes(path, 0, a.numel()), a.cpu()))

    f.deregister_handle()
    f.register_handle()
    back.zero_()
    f.load_storage(back.untyped_storage(), offset=0)
    check("once more after the handle was registered again", torch.equal(a, back))
    print("torch.cuda.gds OK")


main()
