# SPDX-License-Identifier: Apache-2.0
"""Members of groups, in processes of their own, the ledger of what they commit, and who looks on meanwhile."""

import asyncio
import json
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from typing import Any, Final, Protocol

import confluent_kafka as ck
import kafka
from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AiokafkaPartition
from aiokafka.errors import KafkaError as AiokafkaError
from kafka.errors import KafkaError

from tests.support.processes import REPOSITORY

SESSION_MS: Final = 10_000
HEARTBEAT_MS: Final = 500
POLL_S: Final = 0.1
MONITOR: Final = "monitor"
IN_PYTHON: Final[Mapping[str, Any]] = {
    "auto_offset_reset": "earliest",
    "enable_auto_commit": False,
    "session_timeout_ms": SESSION_MS,
    "heartbeat_interval_ms": HEARTBEAT_MS,
}
"""Settings of kafka-python and aiokafka."""

Records = Mapping[int, list[int]]
"""By partition the offsets of the records, in order."""
FAILURES: Final = (ck.KafkaException, KafkaError, AiokafkaError, OSError, TimeoutError, RuntimeError)
"""What a client raises where it has lost its share, or a coordinator is away."""


class Ledger:
    """What members have read, and which commits were acknowledged to them; for use by several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._read: dict[str, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
        self._committed: dict[str, dict[int, list[tuple[float, int]]]] = defaultdict(
            lambda: defaultdict(list)
        )
        self.went_back: list[str] = []
        """Commits that were acknowledged below one that was acknowledged before they began."""

    def read(self, group: str, records: Records) -> None:
        """A member has read these."""
        with self._lock:
            for partition, offsets in records.items():
                self._read[group][partition].update(offsets)

    def acknowledged(self, group: str, offsets: Mapping[int, int], began_s: float, ended_s: float) -> None:
        """A commit was acknowledged, which began and ended at these times of the machine's monotonic clock."""
        with self._lock:
            for partition, offset in offsets.items():
                known = self._committed[group][partition]
                before = max((each for at_s, each in known if at_s < began_s), default=0)
                if offset < before:
                    self.went_back.append(f"{group}-{partition}: {offset} after {before}")
                known.append((ended_s, offset))

    def committed(self, group: str) -> dict[int, int]:
        """The highest acknowledged offset of each partition."""
        with self._lock:
            return {
                partition: max(offset for _, offset in known)
                for partition, known in self._committed[group].items()
            }

    def missing(self, group: str, ends: Mapping[int, int]) -> dict[int, list[int]]:
        """Records that no member of a group has read."""
        with self._lock:
            read = self._read[group]
            gaps = {partition: sorted(set(range(end)) - read[partition]) for partition, end in ends.items()}
        return {partition: offsets for partition, offsets in gaps.items() if offsets}


class Client(Protocol):
    """A consumer of one library, which belongs to a group."""

    def poll(self) -> Records:
        """Some records, or none. Raises one of FAILURES."""

    def commit(self, offsets: Mapping[int, int]) -> None:
        """Commit as a member. Raises one of FAILURES."""

    def close(self) -> None:
        """Leave the group."""


class Confluent:
    """confluent-kafka."""

    def __init__(self, bootstrap: str, group: str, topic: str) -> None:
        self._topic = topic
        self._consumer = ck.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": SESSION_MS,
                "heartbeat.interval.ms": HEARTBEAT_MS,
                "reconnect.backoff.max.ms": 500,
                "log_level": 0,
            }
        )
        self._consumer.subscribe([topic])

    def poll(self) -> Records:
        found: dict[int, list[int]] = defaultdict(list)
        for message in self._consumer.consume(10, POLL_S):
            if message.error() is None:
                found[int(message.partition() or 0)].append(int(message.offset() or 0))
        return found

    def commit(self, offsets: Mapping[int, int]) -> None:
        wanted = [ck.TopicPartition(self._topic, partition, offset) for partition, offset in offsets.items()]
        for done in self._consumer.commit(offsets=wanted, asynchronous=False) or []:
            if done.error is not None:
                raise ck.KafkaException(done.error)

    def close(self) -> None:
        self._consumer.close()


class KafkaPython:
    """kafka-python."""

    def __init__(self, bootstrap: str, group: str, topic: str) -> None:
        self._topic = topic
        self._consumer = kafka.KafkaConsumer(
            topic,
            bootstrap_servers=bootstrap.split(","),
            group_id=group,
            reconnect_backoff_max_ms=500,
            **IN_PYTHON,
        )

    def poll(self) -> Records:
        found = self._consumer.poll(timeout_ms=int(POLL_S * 1e3), max_records=10)
        return {at.partition: [record.offset for record in records] for at, records in found.items()}

    def commit(self, offsets: Mapping[int, int]) -> None:
        self._consumer.commit(
            {
                kafka.TopicPartition(self._topic, partition): kafka.OffsetAndMetadata(offset, "", -1)
                for partition, offset in offsets.items()
            }
        )

    def close(self) -> None:
        self._consumer.close()


class Aiokafka:
    """aiokafka, on an event loop of its own thread."""

    def __init__(self, bootstrap: str, group: str, topic: str) -> None:
        self._topic = topic
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=f"aiokafka of {group}")
        self._thread.start()
        self._consumer: Any = self._run(self._started(bootstrap, group))

    async def _started(self, bootstrap: str, group: str) -> AIOKafkaConsumer:
        consumer = AIOKafkaConsumer(
            self._topic,
            bootstrap_servers=bootstrap.split(","),
            group_id=group,
            metadata_max_age_ms=1_000,
            **IN_PYTHON,
        )
        await consumer.start()
        return consumer

    def _run(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(120)

    def poll(self) -> Records:
        found = self._run(self._consumer.getmany(timeout_ms=int(POLL_S * 1e3), max_records=10))
        return {at.partition: [record.offset for record in records] for at, records in found.items()}

    def commit(self, offsets: Mapping[int, int]) -> None:
        wanted = {AiokafkaPartition(self._topic, partition): offset for partition, offset in offsets.items()}
        self._run(self._consumer.commit(wanted))

    def close(self) -> None:
        try:
            self._run(self._consumer.stop())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()


KINDS: Final[Mapping[str, Callable[[str, str, str], Client]]] = {
    "confluent-kafka": Confluent,
    "kafka-python": KafkaPython,
    "aiokafka": Aiokafka,
}
"""(bootstrap, group, topic) -> a client, by its library."""


class ClientProcess(ABC):
    """A client in a process of its own, until it is closed: what it leaves open is not the test's."""

    def __init__(self, name: str, *arguments: str) -> None:
        self._name = name
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.gateway.day", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=REPOSITORY,
        )
        self._thread = threading.Thread(target=self._read_reports, name=name)
        self._thread.start()

    def _read_reports(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.take(json.loads(line))

    @abstractmethod
    def take(self, report: dict[str, Any]) -> None:
        """Take what the process reports, in a thread."""

    def close(self) -> None:
        """Have it close its client."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._thread.join()
        assert self._process.wait() == 0, f"{self._name} has failed"
        assert self._process.stdout is not None
        self._process.stdout.close()


class Member(ClientProcess):
    """One member of a group."""

    def __init__(self, library: str, bootstrap: str, group: str, topic: str, ledger: Ledger) -> None:
        self.group = group
        self._ledger = ledger
        super().__init__(f"a member of {group}", library, bootstrap, group, topic)

    def take(self, report: dict[str, Any]) -> None:
        offsets = {int(partition): value for partition, value in report["partitions"].items()}
        if report["what"] == "read":
            self._ledger.read(self.group, offsets)
        else:
            self._ledger.acknowledged(self.group, offsets, report["began"], report["ended"])


class Monitor(ClientProcess):
    """Asks for all groups and their offsets again and again, as monitors do."""

    def __init__(self, bootstrap: str, groups: Iterable[str]) -> None:
        self.polls = 0
        """How often it has got all that it has asked for."""
        super().__init__("a monitor", MONITOR, bootstrap, *groups)

    def take(self, report: dict[str, Any]) -> None:
        self.polls += 1


def main(kind: str, bootstrap: str, *arguments: str) -> None:
    """Be a monitor or a member until the standard input is closed."""
    ends = threading.Event()

    def wait_for_the_end() -> None:
        sys.stdin.read()
        ends.set()

    threading.Thread(target=wait_for_the_end, daemon=True).start()
    if kind == MONITOR:
        _monitor(bootstrap, arguments, ends)
    else:
        _consume(partial(KINDS[kind], bootstrap, *arguments), ends)


def _monitor(bootstrap: str, groups: Sequence[str], ends: threading.Event) -> None:
    """Report each time that everything was read."""
    while not ends.wait(POLL_S):
        with (
            suppress(*FAILURES),
            closing(kafka.KafkaAdminClient(bootstrap_servers=bootstrap.split(","))) as admin,
        ):
            admin.list_groups()
            admin.describe_groups(list(groups))
            admin.list_group_offsets(dict.fromkeys(groups))
            _report(what="polled")


def _consume(start: Callable[[], Client], ends: threading.Event) -> None:
    """Consume and commit; report each record and each acknowledged commit."""
    client = None
    while client is None and not ends.is_set():
        with suppress(*FAILURES):
            client = start()
    if client is None:
        return
    while not ends.is_set():
        with suppress(*FAILURES):
            _step(client)
    with suppress(*FAILURES):
        client.close()


def _step(client: Client) -> None:
    records = {partition: offsets for partition, offsets in client.poll().items() if offsets}
    if not records:
        return
    _report(what="read", partitions=records)
    began_s = time.monotonic()
    offsets = {partition: read[-1] + 1 for partition, read in records.items()}
    client.commit(offsets)
    _report(what="committed", partitions=offsets, began=began_s, ended=time.monotonic())


def _report(**report: object) -> None:
    sys.stdout.write(f"{json.dumps(report)}\n")
    sys.stdout.flush()


@contextmanager
def looking(look: Callable[[], None]) -> Iterator[list[BaseException]]:
    """Call `look` again and again in a thread; what it raises, but for what a client raises, is in the list."""
    ends = threading.Event()
    failures: list[BaseException] = []

    def run() -> None:
        while not ends.wait(POLL_S):
            try:
                look()
            except FAILURES:
                continue  # a coordinator is away
            except BaseException as error:  # noqa: BLE001 - the test looks at it
                failures.append(error)
                return

    thread = threading.Thread(target=run, name="looking")
    thread.start()
    try:
        yield failures
    finally:
        ends.set()
        thread.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
