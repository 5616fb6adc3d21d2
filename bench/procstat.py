# SPDX-License-Identifier: Apache-2.0
"""CPU time and memory of a process with all its descendants, as Linux accounts for them in /proc."""

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

PROC: Final = Path("/proc")
TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")  # usually 100: the counters move in steps of 10 ms
_CPUCLOCK_SCHED: Final = 2


def process_tree(pid: int) -> list[int]:
    """The process and all its living descendants."""
    found = [pid]
    for parent in found:
        found += _children(parent)
    return found


def _children(pid: int) -> Iterator[int]:
    # Children are listed by the thread that made them.
    for path in (PROC / str(pid) / "task").glob("*/children"):
        with contextlib.suppress(OSError):  # a thread or process may end while we look
            yield from map(int, path.read_text().split())


def tree_cpu_s(pid: int) -> float:
    """User and system time of the process, its descendants, and those of them that ended, in seconds.

    Raises ProcessLookupError when the process itself is gone.
    """
    total_ticks = 0
    for process in process_tree(pid):
        try:
            stat = (PROC / str(process) / "stat").read_text()
        except OSError:
            if process == pid:
                raise ProcessLookupError(f"process {pid} is gone") from None
            continue
        # utime, stime, cutime and cstime, fields 14 to 17. Field 2, the command, may hold spaces.
        total_ticks += sum(map(int, stat.rpartition(")")[2].split()[11:15]))
    return total_ticks / TICKS_PER_S


def process_cpu_s(pid: int) -> float:
    """User and system time of the process alone, to the nanosecond, in seconds.

    Raises ProcessLookupError when it is gone.
    """
    try:
        return time.clock_gettime(~pid << 3 | _CPUCLOCK_SCHED)  # what clock_getcpuclockid(3) makes of it
    except OSError:
        raise ProcessLookupError(f"process {pid} is gone") from None


def tree_rss_bytes(pid: int) -> int:
    """Resident memory of the process and its descendants; pages that they share count in each.

    Raises ProcessLookupError when the process itself is gone.
    """
    total = 0
    for process in process_tree(pid):
        try:
            status = (PROC / str(process) / "status").read_text()
        except OSError:
            if process == pid:
                raise ProcessLookupError(f"process {pid} is gone") from None
            continue
        total += sum(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmRSS:"))
    return total


def filesystem_type(path: Path) -> str:
    """The type of the filesystem that holds a path (ext4, tmpfs, …), "unknown" where /proc does not say."""
    wanted = path.resolve()
    best, kind = -1, "unknown"
    for line in (PROC / "mounts").read_text().splitlines():
        _device, mount, mount_type = line.split()[:3]
        if wanted.is_relative_to(mount) and len(mount) > best:
            best, kind = len(mount), mount_type
    return kind
