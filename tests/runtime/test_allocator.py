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
from coordinator.runtime.allocator import fix_mmap_threshold, trim_heap
from coordinator.runtime.garbage import free_interpreter_caches

def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1])

{before}
begun = resident()
one, buffers, stay = bytes([1]), [], []  # a constant would be one object
for number in range({count}):
    buffers.append(one * {size})
    if number % {every} == 0:
        stay.append({stays})
full = resident()
buffers.clear()
{after}
print(begun, full, resident())
"""


@pytest.mark.parametrize(
    ("before", "after", "count", "size", "every", "stays"),
    [
        ("fix_mmap_threshold()", "", 2_000, 70_000, 1, "one * 600"),
        ("", "trim_heap()", 2_000, 20_000, 1, "one * 600"),
        ("", "trim_heap()", 400_000, 100, 2_000, "one * 100"),
    ],
    ids=["large", "medium", "small"],
)
def test_freed_memory_returns_to_the_system(
    before: str, after: str, count: int, size: int, every: int, stays: str
) -> None:
    begun, full, left = _pages(before=before, after=after, count=count, size=size, every=every, stays=stays)
    assert left - begun < (full - begun) / 4


@pytest.mark.parametrize(
    ("count", "made"),
    [(2_000, "tuple([number] * 5)"), (4_000, "[name := f'{number}', getattr(Path, name, None)]")],
    ids=["tuples", "names"],
)
def test_what_the_interpreter_keeps_for_reuse_keeps_no_pages(count: int, made: str) -> None:
    def left_over(after: str) -> int:
        begun, _, left = _pages(before="", after=after, count=count, size=4096, every=1, stays=made)
        return left - begun

    kept = left_over("stay.clear(); trim_heap()")
    assert kept > 400
    assert left_over("stay.clear(); free_interpreter_caches(); trim_heap()") < kept / 4


def _pages(**program: str | int) -> tuple[int, int, int]:
    """The resident pages of the program at its beginning, at most, and at its end."""
    done = subprocess.run(
        [sys.executable, "-c", FREES.format_map(program)],
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **PAGE_WISE},
    )
    begun, full, left = map(int, done.stdout.split())
    return begun, full, left
