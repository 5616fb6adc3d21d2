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
    program = FREES.format(before=before, after=after, count=count, size=size, every=every, stays=stays)
    done = subprocess.run(
        [sys.executable, "-c", program],
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **PAGE_WISE},
    )
    begun, full, left = map(int, done.stdout.split())
    assert left - begun < (full - begun) / 4
