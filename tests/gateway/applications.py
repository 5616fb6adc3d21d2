# SPDX-License-Identifier: Apache-2.0
"""Applications of all client libraries, in processes of their own, watched for what they are connected to."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from tests.gateway.clients.commands import COMMANDS, command
from tests.gateway.connections import far_ports, remote_ports
from tests.gateway.whole import Whole
from tests.peers.fetching import UnavailableError
from tests.support.missing import skip_or_fail
from tests.support.processes import ServerProcess
from tests.support.waiting import wait_until

LIBRARIES: Final = tuple(COMMANDS)
LOOK_EVERY_S: Final = 0.1

_READ: Final = re.compile(r"^read (-?\d+)\n", re.MULTILINE)
_PRODUCED: Final = re.compile(r"^produced (\d+)\n", re.MULTILINE)


class Pace(NamedTuple):
    """How often an application asks for the metadata, and how long it waits from one record to the next."""

    refresh_ms: int
    pause_ms: int


QUICK: Final = Pace(refresh_ms=150, pause_ms=70)
STEADY: Final = Pace(refresh_ms=600, pause_ms=100)


class Application:
    """One process: a member of the group that has its topic's name, and a producer to that topic if it is the first."""

    def __init__(
        self,
        whole: Whole,
        work: Path,
        library: str,
        topic: str,
        *,
        name: str = "first",
        pace: Pace,
        transactions: bool = False,
    ) -> None:
        """Start it. Raises UnavailableError where the library, or what builds it, is missing."""
        work.mkdir(exist_ok=True)
        self.topic = topic
        self._whole = whole
        self._over, self._enough = work / f"{name}-over", work / f"{name}-enough"
        words = ["--bootstrap", whole.brokers, "--topic", topic, "--group", topic]
        words += ["--refresh-ms", str(pace.refresh_ms), "--over", str(self._over)]
        if name == "first":
            words += ["--enough", str(self._enough), "--pause-ms", str(pace.pause_ms)]
        if transactions:
            words += ["--transactional-id", topic]
        self._process = ServerProcess([*command(library), *words], work / f"{name}.log")
        self._heard = 0
        self._has_left = False
        self._brokers: set[int] = set()
        self.seen_ports: set[int] = set()
        self.values: list[int] = []
        """What it has read by now."""
        self.produced: int | None = None
        """How many records it has produced; None while it goes on with that."""

    def look(self, table: Mapping[str, int]) -> None:
        """Hear what it says, and see that it runs and what it is connected to: to no broker, not to one that was."""
        self._hear()
        if self._has_left:
            return
        self._process.assert_running()
        self._look_at_ports(table)

    def _look_at_ports(self, table: Mapping[str, int]) -> None:
        self._brokers |= self._whole.real_ports
        self.seen_ports |= remote_ports(self._process.pid, table)
        assert not self.seen_ports & self._brokers, f"the client has found a broker:\n{self.said()}"

    def _hear(self) -> None:
        with self._process.log.open("rb") as log:
            log.seek(self._heard)
            said = log.read()
        lines = said[: said.rfind(b"\n") + 1]
        self._heard += len(lines)
        whole = lines.decode(errors="replace")
        self.values += [int(number) for number in _READ.findall(whole)]
        if found := _PRODUCED.search(whole):
            self.produced = int(found[1])

    def produce_no_more(self) -> None:
        """Have it produce no more."""
        self._enough.touch()

    def end(self) -> None:
        """Have it leave its group; returns when it has ended, and well."""
        self._over.touch()
        wait_until(self._has_ended, what=lambda: f"the end of {self.topic}:\n{self.said()}")
        assert self._process.exit_status == 0, self.said()
        self._has_left = True
        self._hear()

    def _has_ended(self) -> bool:
        self._look_at_ports(far_ports())
        return self._process.exit_status is not None

    def said(self) -> str:
        """The end of what it has said."""
        return self._process.log_tail()

    def close(self) -> None:
        """End it at once."""
        self._process.kill9()


class Applications:
    """One of each library, side by side, each with a topic and a group of its own.

    One that fails, or comes no further, is left behind, with the reason in `failed`; the others go on.
    """

    def __init__(
        self, whole: Whole, work: Path, prefix: str, pace: Pace, *, transactions: bool = False
    ) -> None:
        self._whole = whole
        self._pace = pace
        self._work = work
        self._transactions = transactions
        self.topics = {library: f"{prefix}-{library}" for library in LIBRARIES}
        self.failed: dict[str, str] = {}
        self.missing: dict[str, str] = {}
        self.first: dict[str, Application] = {}
        self.second: dict[str, Application] = {}
        for library, topic in self.topics.items():
            whole.create_topic(topic, 3)
            self.start(self.first, library, "first")

    def start(self, those: dict[str, Application], library: str, name: str) -> None:
        """Start the application `name` of a library."""
        try:
            those[library] = Application(
                self._whole,
                self._work / library,
                library,
                self.topics[library],
                name=name,
                pace=self._pace,
                transactions=self._transactions,
            )
        except UnavailableError as error:
            self.missing[library] = str(error)

    def start_second(self) -> None:
        """Start another member of each group, which does not produce."""
        for library in list(self.first):
            self.start(self.second, library, "second")

    def all_reach(self, what: str, reached: Callable[[str], bool], timeout_s: float = 120.0) -> None:
        """Wait until each library has come so far, and leave behind which has not."""
        waiting = [library for library in self.first if library not in self.failed]

        def done() -> bool:
            table = far_ports()
            for library in list(waiting):
                try:
                    self._look(library, table)
                    if reached(library):
                        waiting.remove(library)
                except AssertionError as error:
                    self.failed[library] = f"before {what}: {error}"
                    waiting.remove(library)
            return not waiting

        try:
            wait_until(done, timeout_s, interval_s=LOOK_EVERY_S)
        except AssertionError:
            for library in waiting:
                self.failed[library] = f"it does not come to {what}:\n{self.first[library].said()}"

    def _look(self, library: str, table: Mapping[str, int]) -> None:
        for those in (self.first, self.second):
            if library in those:
                those[library].look(table)

    def all_read_on(self, what: str, count: int = 15) -> None:
        """Wait until each library has read so many records more."""
        before = {library: len(self.values(library)) for library in self.first}
        self.all_reach(what, lambda library: len(self.values(library)) >= before[library] + count)

    def values(self, library: str) -> list[int]:
        """What the members have read together."""
        return [
            value
            for those in (self.first, self.second)
            if library in those
            for value in those[library].values
        ]

    def end_second(self) -> None:
        """Have the second members leave."""
        self._end(self.second)

    def read_all_and_end(self) -> None:
        """Produce no more, read what there is, and end."""
        for application in self.first.values():
            application.produce_no_more()
        self.all_reach("the end of its topic", self._has_read_all)
        self._end(self.first)

    def _end(self, those: dict[str, Application]) -> None:
        for library, application in those.items():
            if library not in self.failed:
                try:
                    application.end()
                except AssertionError as error:
                    self.failed[library] = str(error)

    def _has_read_all(self, library: str) -> bool:
        produced = self.first[library].produced
        return produced is not None and len(self.values(library)) >= produced

    def require(self, library: str) -> Application:
        """What came of a library; fails with what went wrong, skips (but in CI) where it is missing."""
        if library in self.missing:
            skip_or_fail(self.missing[library])
        assert library not in self.failed, self.failed[library]
        return self.first[library]

    def close(self) -> None:
        """End whatever still runs."""
        for application in (*self.first.values(), *self.second.values()):
            application.close()
