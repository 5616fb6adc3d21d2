# SPDX-License-Identifier: Apache-2.0
"""Returns freed memory to the operating system, if the C library is glibc.

glibc maps buffers above a threshold separately and unmaps them when they are freed. By default it raises this threshold
up to 32 MiB as such buffers are freed. Large buffers then share the heap with small objects that stay, and most of what
is freed remains with the process.
"""

import ctypes
from typing import Final

PAGE_WISE: Final = {"PYTHONMALLOC": "malloc"}
"""The environment of a process in which small objects are glibc's as well.

Python's own allocator returns memory in pieces of 1 MiB, and one object that stays keeps a whole piece; `trim_heap`
returns single pages.
"""
MAPPED_FROM_BYTES: Final = 64 * 1024
"""Buffers of this size and above are mapped separately."""

_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3


def fix_mmap_threshold() -> None:
    """Fix the threshold at MAPPED_FROM_BYTES. Does nothing with another C library."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, MAPPED_FROM_BYTES)
        mallopt(_M_TRIM_THRESHOLD, 2 * MAPPED_FROM_BYTES)


def trim_heap() -> None:
    """Return the free pages of the heap to the system. Does nothing with another C library.

    It takes about 10 ms for 100 MB of free pages, during which other threads cannot allocate from the heap.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
