# SPDX-License-Identifier: Apache-2.0
"""What was freed goes back to the system: large buffers at once, others when that is asked for."""

import ctypes
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


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="this is not glibc")
@pytest.mark.parametrize(
    ("name", "size", "before", "after"),
    [
        ("give_back_large_buffers", 70_000, "give_back_large_buffers()", ""),
        ("give_back_freed", 20_000, "", "give_back_freed()"),
    ],
)
def test_what_was_freed_goes_back(name: str, size: int, before: str, after: str) -> None:
    program = FREES.format(name=name, size=size, before=before, after=after)
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=120
    )
    begun, full, left = map(int, done.stdout.split())
    assert left - begun < (full - begun) / 4
