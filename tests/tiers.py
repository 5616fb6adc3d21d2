# SPDX-License-Identifier: Apache-2.0
"""The tiers of the suite: which tests `make test-quick`, `make test` and `make test-all` run.

The tier of a test follows from what it needs. A need is a marker: fixtures that start something bring it along
(`NEEDED_BY_FIXTURE`), a test that starts something itself has the marker on it. A test that needs nothing but its own
process is `quick`: the guard here fails it if it starts a process or binds a port that was not reserved for it, and
tests/test_tiers.py if it sleeps. `make test` runs the quick tests and those marked `gate`, one short pass through each
real component; `make test-all` runs everything.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest

from bench import ports

NEEDS: Final = {
    "process": "starts a process of ours, or a tool",
    "kafka": "needs a real Apache Kafka (Java 17 and Maven); skips with a line where they are missing",
    "spark": "needs Spark (Java 17)",
    "slow": "takes more than some seconds",
}
"""The markers that keep a test out of the quick tier."""

NEEDED_BY_FIXTURE: Final = {
    "authority": "process",
    "bootstrap": "process",
    "browser": "process",
    "clone": "process",
    "documented": "process",
    "family": "process",
    "java": "spark",
    "kafka_broker": "kafka",
    "make_nodes": "process",
    "own_server": "process",
    "own_target": "process",
    "prometheus": "process",
    "promtool": "process",
    "server": "process",
    "service": "process",
    "spark": "spark",
    "taken_over": "process",
    "target": "process",
}

STARTS_A_PROCESS: Final = frozenset(
    ("os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.system", "subprocess.Popen")
)
"""Audit events of Python."""


class NotQuick(Exception):
    """Raised in a quick test by what only other tests may do."""


def set_tier(item: pytest.Item) -> None:
    """Mark a test with what its fixtures need, and as `quick` if that is nothing."""
    for fixture in getattr(item, "fixturenames", ()):
        if fixture in NEEDED_BY_FIXTURE:
            item.add_marker(NEEDED_BY_FIXTURE[fixture])
    if not any(item.get_closest_marker(need) for need in NEEDS):
        item.add_marker("quick")


class Guard:
    """Sees to it that a quick test is one. Python has no way to remove an audit hook, so there is one for a run."""

    def __init__(self) -> None:
        self._guarding = False
        self._broken: list[str] = []

    def install(self) -> None:
        """Begin to watch; nothing is refused before `guarding`."""
        sys.addaudithook(self._audit)

    @contextmanager
    def guarding(self) -> Iterator[None]:
        """While a quick test and its fixtures run. Raises NotQuick at the end for what the test itself has caught."""
        self._guarding, self._broken = True, []
        try:
            yield
        finally:
            self._guarding = False
        if self._broken:
            raise NotQuick(self._broken[0])

    def _refuse(self, what: str) -> None:
        message = f"a quick test {what}: give it a marker of tests/tiers.py, or do it otherwise"
        self._broken.append(message)
        raise NotQuick(message)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._guarding:
            return
        if event in STARTS_A_PROCESS:
            self._refuse(f"starts a process ({event})")
        elif event == "socket.bind":
            address = arguments[1]
            if isinstance(address, tuple) and address[1] and not ports.is_reserved(address[1]):
                self._refuse(f"binds port {address[1]}, which was not reserved")
