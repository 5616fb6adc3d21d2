# SPDX-License-Identifier: Apache-2.0
"""A client in a process of its own, watched for what it is connected to."""

import json
import sys
from pathlib import Path

from tests.gateway.connections import remote_ports
from tests.gateway.whole import Whole, descendants
from tests.support.processes import ServerProcess

REFRESH_MS = 150


class Reading:
    """One client that produces and reads so many records of a topic; its group has the topic's name."""

    def __init__(self, whole: Whole, log: Path, library: str, topic: str, count: int, pause_ms: int) -> None:
        """Start it; `library` is a module of `tests.gateway.clients`."""
        command = [sys.executable, "-m", f"tests.gateway.clients.{library}"]
        command += ["--bootstrap", whole.brokers, "--topic", topic, "--group", topic]
        command += ["--count", str(count), "--pause-ms", str(pause_ms), "--refresh-ms", str(REFRESH_MS)]
        self._whole = whole
        self._process = ServerProcess(command, log)
        self.seen_ports: set[int] = set()

    def has_ended(self) -> bool:
        """Whether it has; looks at its connections."""
        for process in descendants(self._process.pid):
            self.seen_ports |= remote_ports(process)
        assert not self.seen_ports & self._whole.real_ports, "the client has found a broker"
        return self._process.exit_status is not None

    def values(self) -> list[int]:
        """What it has read, once it has ended well."""
        assert self._process.exit_status == 0, self.said()
        found: list[int] = json.loads(self._process.log_tail(1))
        return found

    def said(self) -> str:
        """The end of what it has said."""
        return self._process.log_tail()

    def close(self) -> None:
        """End it."""
        self._process.kill9()
