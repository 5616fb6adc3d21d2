# SPDX-License-Identifier: Apache-2.0
"""Servers as child processes: Groupkeeper here, Kafka in bench/kafka.py."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import textwrap
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

from bench import wire
from bench.cluster import Address, Peer
from bench.installed import groupkeeper
from bench.ports import HOST, free_ports, service_ports
from bench.wire import BadReply

REPOSITORY: Final = Path(__file__).resolve().parent.parent
POLL_EVERY_S: Final = 0.002
START_TIMEOUT_S: Final = 90.0
STOP_TIMEOUT_S: Final = 30.0
REPLY_TIMEOUT_S: Final = 2.0
LINES_QUOTED: Final = 10
COLUMNS_QUOTED: Final = 300


class NotStarted(Exception):
    """A server did not come up; the message ends with its last output."""


class Started(NamedTuple):
    """How long a start took, from the start of the process on."""

    listening_ms: float  # until the port accepted a connection
    answering_ms: float  # until the first ApiVersions was answered


class Server(ABC):
    """A server on a free loopback port, with its data and log in a directory of its own."""

    def __init__(self, name: str, work: Path) -> None:
        self.name = name
        self.work = work
        self.data = work / "data"
        self.address = Address(HOST, free_ports(1)[0])
        self._log = work / "output.log"
        self._process: subprocess.Popen[bytes] | None = None
        work.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        shutil.rmtree(self.work, ignore_errors=True)

    @abstractmethod
    def command(self) -> list[str]:
        """What to run."""

    def format(self) -> None:  # noqa: B027 - a server without this step is the ordinary case
        """Prepare an empty data directory. Raises NotStarted."""

    @property
    def pid(self) -> int:
        """The process id. Raises NotStarted before a start."""
        if self._process is None:
            raise NotStarted(f"{self.name} is not running")
        return self._process.pid

    def start(self) -> Started:
        """Start on what the data directory holds and wait for the first answer. Raises NotStarted."""
        if not self.data.exists():
            self.data.mkdir(parents=True)
            self.format()
        command = tied_to_us(self.command())
        with self._log.open("ab") as log:
            began = time.perf_counter()
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=REPOSITORY,
                start_new_session=True,
            )
        listening_ms = self._wait(began, self._listens)
        return Started(listening_ms, self._wait(began, self._answers))

    def stop(self) -> None:
        """End the process with SIGTERM and wait for it; with SIGKILL when that takes too long."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End the process with SIGKILL, as a crash would."""
        self._end(signal.SIGKILL)

    def reset(self) -> None:
        """Remove the data, so that the next start is the first one."""
        shutil.rmtree(self.data, ignore_errors=True)

    def last_output(self) -> str:
        """The end of what the server wrote."""
        if not self._log.exists():
            return ""
        lines = self._log.read_text(errors="replace").splitlines()[-LINES_QUOTED:]
        return "\n".join(textwrap.shorten(line, COLUMNS_QUOTED) for line in lines)

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        # A session of its own makes the process the leader of a group that holds all its children.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, how)
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _wait(self, began: float, ready: Callable[[], bool]) -> float:
        assert self._process is not None
        while not ready():
            if self._process.poll() is not None:
                code = self._process.returncode
                raise NotStarted(f"{self.name} ended with code {code}:\n{self.last_output()}")
            if time.perf_counter() - began > START_TIMEOUT_S:
                raise NotStarted(f"{self.name} does not answer:\n{self.last_output()}")
            time.sleep(POLL_EVERY_S)
        return round((time.perf_counter() - began) * 1000, 1)

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(self.address) == 0

    def _answers(self) -> bool:
        call = wire.encode(wire.API_VERSIONS, 0, wire.API_VERSIONS.request(version=0))
        try:
            with Peer(self.address, REPLY_TIMEOUT_S) as peer:
                call.decode_good(peer.ask(call))
        except (OSError, BadReply):
            return False
        return True


class Groupkeeper(Server):
    """`groupkeeper serve` of this working tree."""

    def __init__(self, name: str, work: Path, settings: Mapping[str, str] | None = None) -> None:
        super().__init__(name, work)
        port, metrics_port = service_ports(settings or {})
        self.address, self.metrics = Address(HOST, port), Address(HOST, metrics_port)
        # Groups of one member would each wait for others; Kafka is measured without that wait as well.
        self.settings = {"group.initial.rebalance.delay.ms": "0", **(settings or {})}

    def command(self) -> list[str]:
        """`groupkeeper serve …`."""
        serve = [*groupkeeper(), "serve"]
        where = [
            "--listen",
            str(self.address),
            "--advertise",
            str(self.address),
            "--data-dir",
            str(self.data),
        ]
        chosen = [part for key, value in self.settings.items() for part in ("--set", f"{key}={value}")]
        return [*serve, *where, "--metrics", str(self.metrics), *chosen]


def tied_to_us(command: list[str]) -> list[str]:
    """The command so that the kernel ends it when we die, where setpriv (Linux) can arrange that."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL", *command] if setpriv else command
