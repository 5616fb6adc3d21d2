# SPDX-License-Identifier: Apache-2.0
"""The thresholds of a process's garbage collector, and the release of the interpreter's free lists."""

import gc
import sys
from typing import Final

GC_THRESHOLDS: Final = (5_000, 1, 25_000)
"""A node allocates few cycles and many small objects that stay: with the default thresholds a full collection would
walk the whole cache of groups again and again. The other two kinds of collection walk at most three times 5,000
objects, which takes some milliseconds; 50,000 have taken 22, during which the event loop stood still."""

_CLEAR_CACHES: Final = "_clear_type_cache" if sys.version_info < (3, 13) else "_clear_internal_caches"


def free_interpreter_caches() -> None:
    """Free the objects that the interpreter has kept for reuse, so that they keep no page of the heap.

    These are tuples, lists, floats and others, up to 2,000 of a size, which only a full collection frees, and names in
    the cache of attributes, up to 4,096. It takes some milliseconds in a process that has called `gc.freeze`.
    """
    gc.collect()
    getattr(sys, _CLEAR_CACHES)()
