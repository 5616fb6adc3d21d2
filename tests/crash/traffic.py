# SPDX-License-Identifier: Apache-2.0
"""Connections that commit, delete and read offsets until their server dies."""

import random
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping
from typing import Any

from tests.crash.ledger import Key, Ledger
from tests.support import raw

PARTITIONS = 6
DEPTH = 8
SHARED = "crash-shared"


def own_group(index: int) -> str:
    """Return the group that only one connection writes to."""
    return f"crash-{index}"


class Traffic(threading.Thread, ABC):
    """One connection; ends when the server closes it, with `failure` set when something else ends it."""

    def __init__(self, bootstrap: str, ledger: Ledger) -> None:
        """Connect; `start` lets it run."""
        super().__init__(daemon=True)
        self.failure: Exception | None = None
        self._connection = raw.RawConnection(bootstrap)
        self._ledger = ledger

    def run(self) -> None:
        """Work until the connection breaks."""
        try:
            self.work()
        except (ConnectionError, TimeoutError):
            pass  # the crash, as seen from here
        except Exception as failure:  # noqa: BLE001 - whatever it is, the test's own thread reports it
            self.failure = failure
        finally:
            self._connection.close()

    @abstractmethod
    def work(self) -> None:
        """What it does for its living."""


class Committer(Traffic):
    """Commits ever higher offsets, up to DEPTH requests ahead of their answers, and now and then deletes one.

    In a group of its own, and in one that all committers share, each in another partition.
    """

    def __init__(self, bootstrap: str, ledger: Ledger, topic: str, index: int, seed: int) -> None:
        """`seed` decides everything about what it sends."""
        super().__init__(bootstrap, ledger)
        self._topic = topic
        self._index = index
        self._random = random.Random(seed)
        self._under_way: deque[dict[Key, int]] = deque()
        # Offsets differ in all rounds and in all connections, so one that is read shows which commit it was.
        self._next_offset = seed << 20

    def work(self) -> None:
        """Send and receive in random order, a commit first: offsets can be deleted only of a group that exists."""
        self._send_commit(own_group(self._index), [0])
        while True:
            can_send = len(self._under_way) < DEPTH
            if can_send and (not self._under_way or self._random.random() < 0.7):
                self._send()
            else:
                self._receive()

    def _send(self) -> None:
        choice = self._random.random()
        if choice < 0.15:
            partition = self._random.randrange(1, PARTITIONS)
            request = raw.offset_delete(own_group(self._index), self._topic, [partition])
            self._ask(request, 0, {Key(own_group(self._index), partition): None})
        elif choice < 0.5:
            self._send_commit(SHARED, [self._index])
        else:
            # Partition 0 is in every commit and in no deletion: a group that lost all its offsets would be gone.
            others = self._random.sample(range(1, PARTITIONS), k=self._random.randrange(3))
            self._send_commit(own_group(self._index), [0, *others])

    def _send_commit(self, group: str, partitions: list[int]) -> None:
        offsets = {partition: self._offset() for partition in partitions}
        request = raw.standalone_commit(group, self._topic, offsets)
        self._ask(request, 8, {Key(group, partition): offset for partition, offset in offsets.items()})

    def _ask(self, request: Any, version: int, states: Mapping[Key, int | None]) -> None:
        self._under_way.append(self._ledger.ask(states))
        self._connection.send(request, version)

    def _receive(self) -> None:
        answer = self._connection.receive()
        errors = [part.error_code for topic in answer.topics for part in topic.partitions]
        assert set(errors) == {raw.NONE}, f"{answer}"
        self._ledger.acknowledge(self._under_way.popleft())

    def _offset(self) -> int:
        self._next_offset += 1
        return self._next_offset


class Reader(Traffic):
    """Reads the shared group over and over: what it was shown may not be lost either."""

    def work(self) -> None:
        """Fetch and note."""
        while True:
            seen: dict[tuple[str, int], int] = raw.committed_offsets(self._connection, SHARED)
            self._ledger.saw({Key(SHARED, partition): offset for (_, partition), offset in seen.items()})


def start_all(bootstrap: str, ledger: Ledger, topic: str, rng: Any, connections: int) -> list[Traffic]:
    """Start that many committers and one reader."""
    traffic: list[Traffic] = [
        Committer(bootstrap, ledger, topic, index, seed=rng.randrange(1 << 40))
        for index in range(connections)
    ]
    traffic.append(Reader(bootstrap, ledger))
    for each in traffic:
        each.start()
    return traffic
