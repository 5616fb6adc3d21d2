# SPDX-License-Identifier: Apache-2.0
"""A group member as a process of its own: a real client, driven and watched from a test."""

import itertools
import json
import signal
import subprocess
import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.clients.commands import COMMANDS
from tests.peers.fetching import UnavailableError
from tests.support.missing import skip_or_fail
from tests.support.processes import REPOSITORY, environment, tied_to_us
from tests.support.waiting import wait_until


@dataclass(frozen=True)
class Client:
    """A client library and what it can do."""

    name: str
    cooperative: bool
    tells_when_fenced: bool
    creates_topics: bool


CLIENTS = (
    # librdkafka's consumers by default do not have topics created.
    Client("confluent-kafka", cooperative=True, tells_when_fenced=True, creates_topics=False),
    # aiokafka has the eager assignors only, and sends heartbeats without the instance id (v1): a fenced member
    # learns no more than that its member id is unknown.
    Client("aiokafka", cooperative=False, tells_when_fenced=False, creates_topics=True),
    Client("kafka-python", cooperative=True, tells_when_fenced=True, creates_topics=True),
    Client("java", cooperative=True, tells_when_fenced=True, creates_topics=True),
)
"""Those that all tests here run with."""
JAVA_DEBUG = Client("java-debug", cooperative=True, tells_when_fenced=True, creates_topics=True)
"""Tells on standard error what it sends and receives."""
ALSO = (
    Client("franz-go", cooperative=True, tells_when_fenced=False, creates_topics=False),
    Client("sarama", cooperative=False, tells_when_fenced=False, creates_topics=False),
    Client("platformatic", cooperative=False, tells_when_fenced=False, creates_topics=False),
)
"""Those that need Go or Node, and run in test_every_client.py."""


@dataclass(frozen=True)
class MemberOptions:
    """How a member joins; the times in milliseconds."""

    instance_id: str | None = None
    assignor: str = "range"
    session_timeout_ms: int = 60_000
    heartbeat_interval_ms: int = 300


class Member:
    """A running member: the partitions it holds now, and everything it has told."""

    def __init__(
        self,
        client: Client,
        bootstrap: str,
        group: str,
        topic: str,
        name: str,
        work: Path,
        options: MemberOptions,
    ) -> None:
        """Start the process; its standard error goes to a file of its name under `work`."""
        self.name = name
        self.options = options
        self.events: list[dict[str, Any]] = []
        self._log = work / f"{name}.log"
        flags = {
            "bootstrap": bootstrap,
            "group": group,
            "topic": topic,
            "client-id": name,
            "assignor": options.assignor,
            "session-timeout-ms": options.session_timeout_ms,
            "heartbeat-interval-ms": options.heartbeat_interval_ms,
        }
        if options.instance_id is not None:
            flags["instance-id"] = options.instance_id
        try:
            command = [*COMMANDS[client.name](), *(f"--{key}={value}" for key, value in flags.items())]
        except UnavailableError as error:
            skip_or_fail(str(error))
        with self._log.open("ab") as errors:
            self._process = subprocess.Popen(
                tied_to_us(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                cwd=REPOSITORY,
                env=environment(),
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __repr__(self) -> str:
        return f"{self.name}{sorted(self.assignment)}"

    @property
    def assignment(self) -> set[int]:
        """The partitions that it holds, by what its listener was told."""
        held: set[int] = set()
        for event in list(self.events):
            if event["event"] == "assigned":
                held |= set(event["partitions"])
            elif event["event"] in {"revoked", "lost"}:
                held -= set(event["partitions"])
        return held

    def told(self, event: str) -> list[dict[str, Any]]:
        """Return all events of one name."""
        return [each for each in list(self.events) if each["event"] == event]

    def commit(self, offsets: Mapping[int, int]) -> None:
        """Commit these offsets by partition; raises AssertionError when the client reports a failure."""
        answer = self._ask({"command": "commit", "offsets": dict(offsets)})
        assert answer["event"] == "committed", f"{self}: commit answered {answer}"

    def try_commit(self, offsets: Mapping[int, int]) -> str:
        """Commit and return what came of it: `committed`, `refused` or `fenced`."""
        return str(self._ask({"command": "commit", "offsets": dict(offsets)})["event"])

    def committed(self, partitions: Collection[int]) -> dict[int, int]:
        """Return what the client's committed() gives for these partitions, without those that have no offset."""
        answer = self._ask({"command": "committed", "partitions": sorted(partitions)})
        assert answer["event"] == "offsets", f"{self}: committed() answered {answer}"
        return {int(partition): offset for partition, offset in answer["offsets"].items()}

    def leave(self) -> None:
        """Close the client in good order and wait for the process to end."""
        self._send({"command": "leave"})
        status = self._process.wait(120)
        self._reader.join(120)
        assert status == 0, f"{self} ended with {status}:\n{self.diagnosis()}"
        assert self.told("left"), f"{self} ended without closing its client:\n{self.diagnosis()}"

    def kill9(self) -> None:
        """SIGKILL: no goodbye to the coordinator."""
        self._process.kill()
        self._process.wait(120)

    def freeze(self) -> None:
        """SIGSTOP: as a machine that hangs; no heartbeat leaves it."""
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """SIGCONT: the zombie comes back."""
        self._process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        """End whatever still runs and release the pipes."""
        if self._process.poll() is None:
            self.kill9()
        self._reader.join(120)
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()

    def printed(self) -> str:
        """Return what it has printed on standard error."""
        return self._log.read_text()

    def diagnosis(self) -> str:
        """Return what it told and what it printed, for a failure's message."""
        told = "\n".join(json.dumps(event) for event in list(self.events)[-20:])
        return f"--- {self.name} told\n{told}\n--- {self.name} printed\n{self.printed()[-3000:]}"

    def _ask(self, command: dict[str, Any]) -> dict[str, Any]:
        answers = {"committed", "offsets", "refused", "fenced"}
        before = len(self.events)
        self._send(command)

        def answer() -> dict[str, Any] | None:
            assert self._process.poll() is None, f"{self} has ended:\n{self.diagnosis()}"
            return next(
                (
                    each
                    for each in itertools.islice(list(self.events), before, None)
                    if each["event"] in answers
                ),
                None,
            )

        return wait_until(answer, 40, what=lambda: f"{self} to answer {command}:\n{self.diagnosis()}")

    def _send(self, command: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.events.append(json.loads(line))
