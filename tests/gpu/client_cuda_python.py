#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""cuda.bindings.cufile on a real GPU: version, parameters, read, write, a batch.

  client_cuda_python.py FILE LIBRARY

LIBRARY is the libcufile.so.0 that has to be the one in use. The bindings look for the library in
the Python packages first unless one is in the process already: LD_PRELOAD names ours.
Prints a line a check, and `cuda.bindings.cufile OK`; the exit status is 1 when one fails.
"""
import ctypes
import os
import sys

import torch
from cuda.bindings import cufile
from cuda.bindings._internal.cufile import _inspect_function_pointer

from client import check, check_provider

SIZE = 16 << 20
PIECES = 8


def register(fd):
    descr = cufile.Descr()
    descr.type = cufile.FileHandleType.OPAQUE_FD
    descr.handle.fd = fd
    descr.fs_ops = 0
    return cufile.handle_register(descr.ptr)


def batch(handle, tensor):
    """Read the file in PIECES entries of one batch; the sum of what they report."""
    piece = SIZE // PIECES
    params = cufile.IOParams(PIECES)
    events = cufile.IOEvents(PIECES)
    for i in range(PIECES):
        params[i].mode = cufile.BatchMode.BATCH
        params[i].fh = handle
        params[i].opcode = cufile.Opcode.READ
        params[i].cookie = i + 1
        params[i].u.batch.dev_ptr_base = tensor.data_ptr()
        params[i].u.batch.file_offset = i * piece
        params[i].u.batch.dev_ptr_offset = i * piece
        params[i].u.batch.size_ = piece
    b = cufile.batch_io_set_up(PIECES)
    cufile.batch_io_submit(b, PIECES, params.ptr, 0)
    nr = ctypes.c_uint(PIECES)
    cufile.batch_io_get_status(b, PIECES, ctypes.addressof(nr), events.ptr, 0)
    got = {int(events[i].cookie): int(events[i].ret) for i in range(nr.value)}
    cufile.batch_io_destroy(b)
    return got


def main():
    path, library = sys.argv[1:3]
    check_provider(_inspect_function_pointer("__cuFileRead"), library)
    cufile.driver_open()
    check("version %d" % cufile.get_version(), cufile.get_version() >= 1000)
    a = torch.randint(0, 256, (SIZE,), dtype=torch.uint8, device="cuda")
    back = torch.zeros_like(a)
    torch.cuda.synchronize()
    fd = os.open(path, os.O_CREAT | os.O_RDWR | os.O_DIRECT, 0o600)
    h = register(fd)
    cufile.buf_register(a.data_ptr(), SIZE, 0)
    check("write", cufile.write(h, a.data_ptr(), SIZE, 0, 0) == SIZE)
    check("read", cufile.read(h, back.data_ptr(), SIZE, 0, 0) == SIZE)
    check("equal", torch.equal(a, back))
    cufile.buf_deregister(a.data_ptr())
    back.zero_()
    torch.cuda.synchronize()
    got = batch(h, back)
    check("batch: each entry reports its bytes %s" % sorted(got.values()),
          got == {i + 1: SIZE // PIECES for i in range(PIECES)})
    check("batch: equal", torch.equal(a, back))
    try:
        cufile.read(h, 0, 4096, 0, 0)
        check("a null pointer is refused", False)
    except (cufile.cuFileError, ValueError) as e:  # 22 is none of the enumeration's values
        check("a null pointer is refused: %s" % str(e).split("\n", maxsplit=1)[0], True)
    cufile.handle_deregister(h)
    os.close(fd)
    cufile.driver_close()
    print("cuda.bindings.cufile OK")


main()
