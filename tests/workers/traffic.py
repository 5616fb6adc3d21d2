# SPDX-License-Identifier: Apache-2.0
"""Committers that go on whatever happens to their coordinator, and what they were promised."""

import threading
import time
from collections.abc import Sequence
from typing import Any

from kafka.protocol.metadata import FindCoordinatorRequest

from tests.support import raw
from tests.support.waiting import wait_until

TOPIC = "traffic"
PASSING = frozenset({14, 15, 16})
"""COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR: look for it again."""


class Walker(threading.Thread):
    """Commits ever higher offsets to one group, one at a time, and reads each of them back.

    Ends at `stop`, or with a `failure`: an error that no client passes over, or an offset that went back.
    """

    def __init__(self, group: str, addresses: Sequence[str]) -> None:
        super().__init__(daemon=True)
        self.group = group
        self.acknowledged = 0
        self.failure: BaseException | None = None
        self.longest_pause_s = 0.0
        self._addresses = addresses
        self._offset = 0
        self._stop_wanted = threading.Event()
        self._connection: raw.RawConnection | None = None
        self._last = time.monotonic()

    def stop(self) -> None:
        """End, and raise what went wrong."""
        self._stop_wanted.set()
        self.join(120)
        assert not self.is_alive(), f"{self.group} hangs"
        if self.failure is not None:
            raise self.failure

    def run(self) -> None:
        """Commit until told to stop."""
        try:
            while not self._stop_wanted.is_set():
                try:
                    self._step()
                except (OSError, EOFError):  # a process has ended
                    self._forget()
        except BaseException as failure:  # noqa: BLE001 - raised by stop
            self.failure = failure
        finally:
            self._forget()

    def _step(self) -> None:
        connection = self._connection or self.find()
        if connection is None:
            self._stop_wanted.wait(0.01)
            return
        self._connection = connection
        self._offset += 1
        answer = connection.call(raw.standalone_commit(self.group, TOPIC, {0: self._offset}), 8)
        code = answer.topics[0].partitions[0].error_code
        if code in PASSING:
            self._forget()
            return
        assert code == raw.NONE, f"{self.group}: commit refused with {code}"
        self._acknowledged()
        seen = read(connection, self.group)
        if seen is None:
            self._forget()
            return
        assert seen >= self.acknowledged, (
            f"{self.group}: {self.acknowledged} was acknowledged, {seen} is there"
        )

    def _acknowledged(self) -> None:
        self.acknowledged = self._offset
        now = time.monotonic()
        self.longest_pause_s = max(self.longest_pause_s, now - self._last)
        self._last = now

    def find(self) -> raw.RawConnection | None:
        """A connection to the coordinator; None while no node is it."""
        for address in self._addresses:
            try:
                with raw.RawConnection(address, timeout_s=5) as connection:
                    found: Any = connection.call(FindCoordinatorRequest(key=self.group, key_type=0), 2)
            except OSError:
                continue
            if found.error_code == raw.NONE:
                return raw.RawConnection(f"{found.host}:{found.port}", timeout_s=10)
            assert found.error_code in PASSING, f"{self.group}: {found}"
        return None

    def _forget(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def read(connection: raw.RawConnection, group: str) -> int | None:
    """The offset of a group, None where its coordinator is elsewhere now."""
    answer = raw.ask_offsets(connection, group)
    if answer.error_code in PASSING:
        return None
    assert answer.error_code == raw.NONE, f"{group}: fetch refused with {answer.error_code}"
    offsets = [part.committed_offset for topic in answer.topics for part in topic.partitions]
    return offsets[0] if offsets else -1


def committed(addresses: Sequence[str], group: str) -> int:
    """The offset of a group, from its coordinator."""
    walker = Walker(group, addresses)
    found: list[int] = []

    def is_told() -> bool:
        connection = walker.find()
        if connection is not None:
            with connection:
                offset = read(connection, group)
            if offset is not None:
                found.append(offset)
        return bool(found)

    wait_until(is_told, what=f"a node to coordinate {group}")
    return found[0]
