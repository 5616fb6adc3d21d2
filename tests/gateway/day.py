# SPDX-License-Identifier: Apache-2.0
"""Members of groups, in processes of their own, the ledger of what they commit, and who looks on meanwhile."""

import asyncio
import json
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
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


class Member:
    """One member, in a process of its own, until it is closed."""

    def __init__(self, library: str, bootstrap: str, group: str, topic: str, ledger: Ledger) -> None:
        self.group = group
        self._ledger = ledger
        command = [sys.executable, "-m", "tests.gateway.day", library, bootstrap, group, topic]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=REPOSITORY,
        )
        self._thread = threading.Thread(target=self._hear, name=f"member of {group}")
        self._thread.start()

    def _hear(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            said = json.loads(line)
            offsets = {int(partition): value for partition, value in said["partitions"].items()}
            if said["what"] == "read":
                self._ledger.read(self.group, offsets)
            else:
                self._ledger.acknowledged(self.group, offsets, said["began"], said["ended"])

    def close(self) -> None:
        """Have it leave its group."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._thread.join()
        assert self._process.wait() == 0, f"a member of {self.group} has failed"
        assert self._process.stdout is not None
        self._process.stdout.close()


def main(library: str, bootstrap: str, group: str, topic: str) -> None:
    """Consume and commit until the standard input is closed, and tell each record and each acknowledged commit."""
    ends = threading.Event()

    def wait_for_the_end() -> None:
        sys.stdin.read()
        ends.set()

    threading.Thread(target=wait_for_the_end, daemon=True).start()
    client = None
    while client is None and not ends.is_set():
        with suppress(*FAILURES):
            client = KINDS[library](bootstrap, group, topic)
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
    _tell(what="read", partitions=records)
    began_s = time.monotonic()
    offsets = {partition: read[-1] + 1 for partition, read in records.items()}
    client.commit(offsets)
    _tell(what="committed", partitions=offsets, began=began_s, ended=time.monotonic())


def _tell(**said: object) -> None:
    sys.stdout.write(f"{json.dumps(said)}\n")
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
