# SPDX-License-Identifier: Apache-2.0
"""A real Kafka broker as a child process: the peer that our behaviour is compared with."""

import fcntl
import functools
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from bench.kafka import KAFKA_VERSION
from bench.maven import cache_directory, java_version
from bench.ports import free_ports
from tests.kafka.jars import require_kafka_classpath
from tests.support.processes import ServerProcess
from tests.support.waiting import wait_until

START_TIMEOUT_S = 120.0
# A short-lived broker: the quick compiler and collector cut its start from 5 s to 3.
_JAVA = ["java", "-Xms256m", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
# Java says on standard output, unless told otherwise, that an archive does not fit.
_QUIET_JAVA = ["-Xlog:disable", "-Xlog:all=error:stderr"]
_QUIET = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
CLUSTER_ID = "R3JvdXBrZWVwZXJUZXN0cw"


class KafkaNode:
    """One KRaft node as a process: its configuration, its data and its log under a directory of its own."""

    kind = "kafka"

    def __init__(
        self,
        work: Path,
        *,
        port: int,
        settings: Mapping[str, str | int],
        formatting: Sequence[str] = (),
        java: Sequence[str] | None = None,
        classes: Path | None = None,
        version: str = KAFKA_VERSION,
    ) -> None:
        """Prepare a node under `work` that accepts connections at `port` of 127.0.0.1 once it is up.

        `formatting` are arguments for the formatting of its data directory, `java` is the command that runs it, and
        `classes` a directory with classes of the test. Skips the test where Java 17+ or Maven is missing (fails it in
        CI).
        """
        jars = require_kafka_classpath(version)
        self._classpath = jars if classes is None else f"{classes}:{jars}"
        self._java = java or _java_with_classes(version)
        self.port = port
        self.data_dir = work / "data"
        self.log = work / "kafka.log"
        self.settings = {"log.dirs": str(self.data_dir), **settings}
        self._formatting = list(formatting)
        self._properties = work / "server.properties"
        self._process: ServerProcess | None = None
        work.mkdir(parents=True, exist_ok=True)

    @property
    def bootstrap(self) -> str:
        """`host:port` for clients."""
        return f"127.0.0.1:{self.port}"

    @property
    def runs(self) -> bool:
        """Whether there is a process."""
        return self._process is not None

    def launch(self) -> None:
        """Start it and return at once, while it is still starting; the first time, format the data directory."""
        assert self._process is None, "the broker is running already"
        self._properties.write_text("".join(f"{key}={value}\n" for key, value in self.settings.items()))
        if not (self.data_dir / "meta.properties").exists():
            self._format()
        command = [*self._java, _QUIET, "-cp", self._classpath, "kafka.Kafka", str(self._properties)]
        self._process = ServerProcess(command, self.log)

    def start(self) -> None:
        """Start it and return once clients are accepted."""
        self.launch()
        self.wait_until_up()

    def wait_until_up(self) -> None:
        """Return once a launched node accepts clients; fails with its log's end when it has ended."""
        process = self._running()

        def accepts() -> bool:
            process.assert_running()
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", self.port)) == 0

        wait_until(accepts, START_TIMEOUT_S, what=lambda: f"Kafka to accept clients:\n{process.log_tail()}")

    def reads_and_writes(self) -> int:
        """How many calls that read or write its process has made; 0 for one that has ended."""
        return self._running().reads_and_writes()

    def kill9(self) -> None:
        """SIGKILL to this broker's own pid; returns when it is gone."""
        self._running().kill9()
        self._process = None

    def restart(self) -> None:
        """Start again on the same ports and data; kills the process first when it still runs."""
        if self._process is not None:
            self.kill9()
        self.start()

    def pause(self) -> None:
        """SIGSTOP: its connections stay open and nothing answers, as behind a network that drops everything."""
        self._running().send(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT after a pause."""
        self._running().send(signal.SIGCONT)

    def terminate(self) -> None:
        """SIGTERM; asserts that it stops by itself, with the status that Java gives that."""
        process = self._running()
        self._process = None
        status = process.terminate()
        assert status == 128 + signal.SIGTERM, f"exit status {status} after SIGTERM:\n{process.log_tail()}"

    def close(self) -> None:
        """End whatever still runs."""
        if self._process is not None:
            self.kill9()

    def _running(self) -> ServerProcess:
        assert self._process is not None, "the broker is not running"
        return self._process

    def _format(self) -> None:
        tool = [*self._java, _QUIET, "-cp", self._classpath, "kafka.tools.StorageTool", "format"]
        command = [*tool, "-t", CLUSTER_ID, "-c", str(self._properties), *self._formatting]
        formatted = subprocess.run(command, capture_output=True, text=True, check=False)
        assert formatted.returncode == 0, f"formatting failed:\n{formatted.stdout}{formatted.stderr}"


class KafkaBroker(KafkaNode):
    """One KRaft node, broker and controller, on free loopback ports, with its data under a directory of its own."""

    def __init__(
        self,
        work: Path,
        settings: Mapping[str, str | int] | None = None,
        *,
        formatting: Sequence[str] = (),
        java: Sequence[str] | None = None,
        version: str = KAFKA_VERSION,
    ) -> None:
        """Prepare a broker of this version under `work`; `settings` come on top of a single node's.

        `formatting` are arguments for the formatting of its data directory.
        Skips the test where Java 17+ or Maven is missing (fails it in CI).
        """
        port, controller_port = free_ports(2)
        node_id = (settings or {}).get("node.id", 1)
        ours = _single_node(node_id, f"127.0.0.1:{port}", f"127.0.0.1:{controller_port}")
        chosen = {**ours, **(settings or {})}
        super().__init__(work, port=port, settings=chosen, formatting=formatting, java=java, version=version)


@functools.cache
def _java_with_classes(version: str) -> list[str]:
    """The command for a broker's Java, with an archive of the classes that a broker loads: it halves the start.

    The first test of a machine makes the archive: a broker that Java watches until it stops.
    """
    archive = cache_directory() / f"kafka-{version}-java-{java_version()}.jsa"
    with archive.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not archive.exists():
            with tempfile.TemporaryDirectory(dir=archive.parent, prefix="archive-") as work:
                made = Path(work) / "classes.jsa"
                watched = [*_JAVA, f"-XX:ArchiveClassesAtExit={made}", *_QUIET_JAVA]
                broker = KafkaBroker(Path(work), java=watched, version=version)
                try:
                    broker.start()
                    broker.terminate()
                finally:
                    broker.close()
                made.rename(archive)
    return [*_JAVA, f"-XX:SharedArchiveFile={archive}", *_QUIET_JAVA]


def _single_node(node_id: str | int, plain: str, controller: str) -> dict[str, str | int]:
    return {
        "process.roles": "broker,controller",
        "node.id": node_id,
        "controller.quorum.voters": f"{node_id}@{controller}",
        "listeners": f"PLAINTEXT://{plain},CONTROLLER://{controller}",
        "advertised.listeners": f"PLAINTEXT://{plain}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        **replicated(1),
        "group.initial.rebalance.delay.ms": 0,
    }


def replicated(copies: int) -> dict[str, str | int]:
    """Return the settings for so many copies of the topics that Kafka keeps for itself."""
    return {
        "offsets.topic.replication.factor": copies,
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": 1,
        "share.coordinator.state.topic.replication.factor": copies,
        "share.coordinator.state.topic.min.isr": 1,
    }


@pytest.fixture(scope="session")
def kafka_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """A running broker for the whole session; it stops by itself at the end."""
    broker = KafkaBroker(tmp_path_factory.mktemp("kafka"))
    try:
        broker.start()
        yield broker
    finally:
        broker.close()
