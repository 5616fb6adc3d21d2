# SPDX-License-Identifier: Apache-2.0
"""Freed memory returns to the system: large buffers at once, others when the heap is trimmed."""

import os
import subprocess
import sys

import pytest

from coordinator.runtime.allocator import PAGE_WISE

pytestmark = pytest.mark.process

FREES = """
from pathlib import Path
from coordinator.runtime.allocator import map_large_buffers, trim_heap

def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1])

{before}
begun = resident()
one, buffers, stay = bytes([1]), [], []  # a constant would be one object
for number in range({count}):
    buffers.append(one * {size})
    if number % {every} == 0:
        stay.append(one * {stays})
full = resident()
buffers.clear()
{after}
print(begun, full, resident())
"""

KEPT = """
from pathlib import Path
from coordinator.runtime.allocator import trim_heap
from coordinator.runtime.garbage import empty_free_lists

def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1])

one, pages, made = bytes([1]), [], []
begun = resident()
for number in range({count}):
    pages.append(one * 4096)
    made.append({made})
full = resident()
pages.clear()
made.clear()
{after}
trim_heap()
print(begun, full, resident())
"""


@pytest.mark.parametrize(
    ("before", "after", "count", "size", "every", "stays"),
    [
        ("map_large_buffers()", "", 2_000, 70_000, 1, 600),
        ("", "trim_heap()", 2_000, 20_000, 1, 600),
        ("", "trim_heap()", 400_000, 100, 2_000, 100),
    ],
    ids=["large", "medium", "small"],
)
def test_freed_memory_returns_to_the_system(
    before: str, after: str, count: int, size: int, every: int, stays: int
) -> None:
    begun, full, left = _pages(
        FREES.format(before=before, after=after, count=count, size=size, every=every, stays=stays)
    )
    assert left - begun < (full - begun) / 4


@pytest.mark.parametrize(
    ("count", "made"),
    [(2_000, "tuple([number] * 5)"), (4_000, "[name := f'{number}', getattr(Path, name, None)]")],
    ids=["tuples", "names"],
)
def test_what_the_interpreter_keeps_for_reuse_keeps_no_pages(count: int, made: str) -> None:
    begun, _, left = _pages(KEPT.format(count=count, made=made, after=""))
    kept = left - begun
    assert kept > 400
    begun, _, left = _pages(KEPT.format(count=count, made=made, after="empty_free_lists()"))
    assert left - begun < kept / 4


def _pages(program: str) -> tuple[int, int, int]:
    """What it prints: the resident pages at its beginning, at most, and at its end."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **PAGE_WISE},
    )
    begun, full, left = map(int, done.stdout.split())
    return begun, full, left
