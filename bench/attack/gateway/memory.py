# SPDX-License-Identifier: Apache-2.0
"""The resident memory of some processes, sampled while something else goes on."""

import time
from collections.abc import Mapping
from typing import Final, NamedTuple

from bench.attack.background import Background
from bench.procstat import tree_rss_bytes

SAMPLE_EVERY_S: Final = 0.5


class Sample(NamedTuple):
    """What a process had."""

    at: float
    rss_bytes: int


class Memory(Background):
    """Samples processes by their names, each until it ends."""

    def __init__(self, pids: Mapping[str, int]) -> None:
        super().__init__()
        self._pids = dict(pids)
        self.samples: dict[str, list[Sample]] = {name: [] for name in pids}
        self.ended: list[str] = []
        """Processes that have ended."""

    def run(self) -> None:
        """Sample until the end."""
        while not self.over.wait(SAMPLE_EVERY_S):
            for name, pid in list(self._pids.items()):
                self._sample(name, pid)

    def _sample(self, name: str, pid: int) -> None:
        try:
            rss_bytes = tree_rss_bytes(pid)
        except ProcessLookupError:
            del self._pids[name]
            self.ended.append(name)
        else:
            self.samples[name].append(Sample(time.monotonic(), rss_bytes))

    def last_bytes(self, name: str) -> int:
        """What it has now; 0 where it was not sampled."""
        return self.samples[name][-1].rss_bytes if self.samples[name] else 0

    def most_bytes(self, name: str, began: float, ended: float) -> int:
        """The most that it had in this time."""
        return max((each.rss_bytes for each in self.samples[name] if began <= each.at <= ended), default=0)
