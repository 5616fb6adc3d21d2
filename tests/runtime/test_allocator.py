# SPDX-License-Identifier: Apache-2.0
"""Freed memory returns to the system: large buffers at once, others when the heap is trimmed."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.process

FREES = """
from pathlib import Path
from coordinator.runtime.allocator import {name}

def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1])

{before}
begun = resident()
buffers, stay = [], []
for _ in range(2_000):
    buffers.append(b"x" * {size})
    stay.append(b"x" * 600)
full = resident()
buffers.clear()
{after}
print(begun, full, resident())
"""


@pytest.mark.parametrize(
    ("name", "size", "before", "after"),
    [
        ("map_large_buffers", 70_000, "map_large_buffers()", ""),
        ("trim_heap", 20_000, "", "trim_heap()"),
    ],
)
def test_freed_memory_returns_to_the_system(name: str, size: int, before: str, after: str) -> None:
    program = FREES.format(name=name, size=size, before=before, after=after)
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=120
    )
    begun, full, left = map(int, done.stdout.split())
    assert left - begun < (full - begun) / 4
