# SPDX-License-Identifier: Apache-2.0
"""What the C library does with memory that was freed.

glibc raises the size from which a buffer has pages of its own once such a buffer was freed, up to 32 MiB. From then on
large buffers lie among small objects that stay, and what was freed goes back to the system only in part.
"""

import ctypes
from typing import Final

LARGE_BYTES: Final = 64 * 1024
"""A buffer of this size and more has pages of its own, which go back when it is freed."""

_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3


def give_back_large_buffers() -> None:
    """Fix the size from which buffers have pages of their own. Another C library than glibc is left as it is."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, LARGE_BYTES)
        mallopt(_M_TRIM_THRESHOLD, 2 * LARGE_BYTES)


def give_back_freed() -> None:
    """Give back the pages that are free between what is still there.

    For 100 MB of them it takes 10 ms, in which no other thread allocates. Another C library than glibc does nothing.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
