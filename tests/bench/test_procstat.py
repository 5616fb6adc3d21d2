# SPDX-License-Identifier: Apache-2.0
"""CPU time and memory of processes with their descendants."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.procstat import filesystem_type, process_cpu_s, process_tree, tree_cpu_s, tree_rss_bytes

BURN = "import time\nwhile time.process_time() < 0.2: pass\n"
# Burns in a child that ends, has another child that lives, then waits for its input to close.
PARENT = f"""
import subprocess, sys
subprocess.run([sys.executable, "-c", {BURN!r}])
living = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
print(living.pid, flush=True)
sys.stdin.read()
living.communicate()
"""


@pytest.fixture
def family() -> Iterator[tuple[int, int]]:
    """The pids of a parent and of its living child."""
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdout is not None
        yield parent.pid, int(parent.stdout.readline())
        parent.communicate()


def test_children_that_live_and_children_that_ended_count(family: tuple[int, int]) -> None:
    parent, child = family
    assert process_tree(parent) == [parent, child]
    assert tree_cpu_s(parent) >= 0.19  # two counters that are cut to 10 ms
    assert tree_rss_bytes(parent) > tree_rss_bytes(child) > 0


@pytest.mark.process
def test_a_process_that_is_gone_is_said_so() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    for measure in (process_cpu_s, tree_cpu_s, tree_rss_bytes):
        with pytest.raises(ProcessLookupError, match=str(ended.pid)):
            measure(ended.pid)


def test_a_process_alone_is_counted_as_it_counts_itself() -> None:
    before = time.process_time()
    counted = process_cpu_s(os.getpid())
    assert before <= counted <= time.process_time()


def test_our_own_process_is_found_whatever_its_name() -> None:
    assert tree_cpu_s(os.getpid()) > 0


def test_the_filesystem_of_proc_is_proc() -> None:
    assert filesystem_type(Path("/proc/self")) == "proc"
