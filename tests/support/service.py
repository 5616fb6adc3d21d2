# SPDX-License-Identifier: Apache-2.0
"""Groupkeeper itself as a child process: started, killed, restarted and stopped by tests."""

import http.client
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from bench.installed import groupkeeper
from bench.ports import service_ports
from tests.support.processes import ServerProcess
from tests.support.waiting import wait_until

__all__ = ["Service", "wait_until"]

START_TIMEOUT_S = 120.0
UPSTREAM = "upstream.bootstrap.servers"


class Service:
    """One `groupkeeper serve` on free loopback ports, with a data directory that survives restarts."""

    kind = "groupkeeper"

    def __init__(self, work: Path, settings: Mapping[str, str | int] | None = None) -> None:
        """Choose ports and the data directory under `work`; `start` runs the process.

        `settings` are handed over with `--set`, under Kafka's names; a test may change them between two starts, but not
        how many processes there are: their ports are chosen here.
        """
        self.settings: dict[str, str | int] = dict(settings or {})
        self.port, self.metrics_port = service_ports(self.settings)
        self.data_dir = work / "data"
        self.log = work / "groupkeeper.log"
        self._process: ServerProcess | None = None
        work.mkdir(parents=True, exist_ok=True)

    @property
    def bootstrap(self) -> str:
        """`host:port` for clients."""
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """The process id of the running service."""
        return self._running().pid

    def command(self) -> list[str]:
        """Return the command line that `start` runs."""
        address = f"127.0.0.1:{self.port}"
        flags = ["--listen", address, "--data-dir", str(self.data_dir)]
        flags += ["--metrics", f"127.0.0.1:{self.metrics_port}"]
        for key, value in self.settings.items():
            flags += ["--set", f"{key}={value}"]
        return [*groupkeeper(), "serve", *flags]

    def launch(self) -> None:
        """Start it and return at once, while it is still starting."""
        assert self._process is None, "the service is running already"
        self._process = ServerProcess(self.command(), self.log)

    def start(self) -> None:
        """Start it and return once /ready says 200 and the Kafka port accepts connections."""
        self.launch()
        wait_until(
            lambda: self._alive() and self.http_status("/ready") == 200 and self._accepts(),
            START_TIMEOUT_S,
            what=lambda: f"the service to be ready:\n{self.log_text()[-4000:]}",
        )

    def reads_and_writes(self) -> int:
        """How many calls that read or write its process has made; 0 for one that has ended."""
        return self._running().reads_and_writes()

    def kill9(self) -> None:
        """SIGKILL, as a crash; returns when the process is gone."""
        self._running().kill9()
        self._process = None

    def restart(self) -> None:
        """Start again on the same ports and data; kills the process first when it still runs."""
        if self._process is not None:
            self.kill9()
        self.start()

    def terminate(self) -> None:
        """SIGTERM; asserts that it stops by itself with exit status 0."""
        process = self._running()
        self._process = None
        status = process.terminate()
        assert status == 0, f"exit status {status} after SIGTERM:\n{process.log_tail()}"

    def close(self) -> None:
        """End whatever still runs, without a word; for the end of a test."""
        if self._process is not None:
            self.kill9()

    def log_text(self) -> str:
        """Return everything that the service has printed so far, over all its starts."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def http_status(self, path: str) -> int | None:
        """GET `path` from the admin port; None when nothing answers there (yet)."""
        connection = http.client.HTTPConnection("127.0.0.1", self.metrics_port, timeout=120)
        try:
            connection.request("GET", path)
            return connection.getresponse().status
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()

    def _accepts(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def _alive(self) -> bool:
        self._running().assert_running()
        return True

    def _running(self) -> ServerProcess:
        assert self._process is not None, "the service is not running"
        return self._process


@contextmanager
def serving(work: Path, settings: Mapping[str, str | int] | None = None) -> Iterator[Service]:
    """A service that is ready, with its files under `work`; at the end it is killed, if it still runs."""
    service = Service(work, settings)
    try:
        service.start()
        yield service
    finally:
        service.close()
