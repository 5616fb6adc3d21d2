# SPDX-License-Identifier: Apache-2.0
"""Kafka's own tools read our `__consumer_offsets`, and what is read of it is what a Kafka 4.4 would serve."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from protocol.newtypes import GroupId
from protocol.placement import partition_for
from storage.errors import IncompleteBatch
from storage.format.batch import Batch, iter_batches, iter_records
from storage.format.records import GroupMetadataRecord, OffsetCommitRecord, decode_key_and_value
from tests.clients.group import Group
from tests.clients.member import CLIENTS
from tests.kafka.broker import KafkaBroker
from tests.kafka.jars import tool
from tests.support import raw
from tests.support.documented import Documented
from tests.support.raw import RawConnection
from tests.support.reading import EARLIEST, LATEST, fetch, list_offset, read_all
from tests.support.target import Target
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kafka

PARTITIONS = 50


class Console:
    """The documented command of a test, on the whole topic, from the beginning."""

    def __init__(self, bootstrap: str, documented: Documented) -> None:
        (command,) = documented.commands
        documented.add_program(
            "kafka-console-consumer.sh", *tool("org.apache.kafka.tools.consumer.ConsoleConsumer")
        )
        self._output = documented.work / "records"
        self._process = documented.start(command, {"HOST:PORT": f"{bootstrap} >{self._output}"})

    def records(self) -> list[dict[str, Any]]:
        """What it has printed so far: one JSON object after the other."""
        self._process.assert_running()
        text, found, pos = self._output.read_text(), [], 0
        decoder = json.JSONDecoder()
        while pos < len(text):
            try:
                record, pos = decoder.raw_decode(text, pos)
            except json.JSONDecodeError:  # it is being written
                break
            found.append(record)
        return found

    def close(self) -> None:
        self._process.kill9()


@pytest.fixture
def console(target: Target, documented: Documented) -> Iterator[Console]:
    raw.wait_for_coordinator(target.bootstrap, "any")  # with the first one Kafka makes the topic
    running = Console(target.bootstrap, documented)
    try:
        yield running
    finally:
        running.close()


def test_the_offsets_formatter_shows_every_commit_in_its_order(target: Target, console: Console) -> None:
    prefix, topic = uuid.uuid4().hex[:8], f"topic-{uuid.uuid4().hex[:8]}"
    raw.create_topic(target.bootstrap, topic)
    groups = [f"{prefix}-{number}" for number in range(20)]
    for round_ in range(15):  # the consumer starts meanwhile, and goes on while they come
        for number, group in enumerate(groups):
            offsets = {p: 100 * round_ + number + p for p in range(3)}
            raw.commit_offsets(target.bootstrap, group, topic, offsets)
    with RawConnection(target.bootstrap) as connection:
        connection.call(raw.offset_delete(groups[0], topic, [1]), 0)

    def shown() -> dict[tuple[str, int], list[int | None]]:
        found: dict[tuple[str, int], list[int | None]] = {}
        for record in console.records():
            key, value = record["key"]["data"], record["value"]
            if key["group"].startswith(prefix) and key["topic"] == topic:
                offset = None if value is None else value["data"]["offset"]
                found.setdefault((key["group"], key["partition"]), []).append(offset)
        return found

    expected: dict[tuple[str, int], list[int | None]] = {
        (group, p): [100 * round_ + number + p for round_ in range(15)]
        for number, group in enumerate(groups)
        for p in range(3)
    }
    expected[groups[0], 1].append(None)
    wait_until(lambda: shown() == expected, what=lambda: f"all commits to be shown: {shown()}")


def test_the_group_metadata_formatter_shows_what_describe_groups_says(
    target: Target, console: Console, tmp_path: Path
) -> None:
    group = Group(CLIENTS[0], target.bootstrap, tmp_path)
    try:
        members = [group.member("alpha"), group.member("beta")]
        group.wait_shared(members)
        described = raw.describe_group(target.bootstrap, group.id)

        def newest() -> dict[str, Any]:
            values = [
                record["value"]["data"]
                for record in console.records()
                if record["key"]["data"]["group"] == group.id and record["value"] is not None
            ]
            return values[-1] if values else {}

        def shows_both() -> bool:
            shown = {member["memberId"] for member in newest().get("members", ())}
            return shown == {member.member_id for member in described.members}

        wait_until(shows_both, what=lambda: f"both members to be shown: {newest()}")
        shown = newest()
        assert (shown["protocolType"], shown["protocol"]) == ("consumer", described.protocol_data)
        assert group.generation(shown["leader"]) == shown["generation"]
    finally:
        group.close()


# --- beside a Kafka


@pytest.fixture
def both(target: Target, kafka_broker: KafkaBroker) -> list[str]:
    """The addresses of our service and of a Kafka, each with its offsets topic."""
    for bootstrap in (target.bootstrap, kafka_broker.bootstrap):
        raw.wait_for_coordinator(bootstrap, "any")
    return [target.bootstrap, kafka_broker.bootstrap]


def test_what_is_fetched_is_what_a_kafka_serves(both: list[str]) -> None:
    """The same commits: the same keys and values, batch attributes, offsets and ends, counted from where they begin."""
    group, topic = f"group-{uuid.uuid4().hex[:8]}", f"topic-{uuid.uuid4().hex[:8]}"
    ours, theirs = (seen_of(bootstrap, group, topic) for bootstrap in both)
    assert ours == theirs


def seen_of(bootstrap: str, group: str, topic: str) -> list[Any]:
    partition = partition_for(GroupId(group), PARTITIONS)
    raw.create_topic(bootstrap, topic)
    with RawConnection(bootstrap) as connection:
        begin = list_offset(connection, partition, LATEST)
        seen: list[Any] = [begin.error_code, begin.timestamp, begin.leader_epoch]
        for offset in range(3):
            raw.commit_offsets(bootstrap, group, topic, {0: offset, 1: 10 + offset})
        connection.call(raw.offset_delete(group, topic, [1]), 0)
        batches = list(read_all(connection, partition, begin.offset))
        seen += [as_seen(batch, begin.offset) for batch in batches]
        seen += [
            ends(connection, partition, begin.offset, committed=committed) for committed in (False, True)
        ]
        newest = max(batch.max_timestamp for batch in batches)
        first = next(batch for batch in batches if batch.max_timestamp == newest)
        for timestamp in (newest, newest + 1, -3):
            found = list_offset(connection, partition, timestamp)
            assert found.offset in (-1, first.base_offset)
            seen.append((found.error_code, found.offset == -1, found.timestamp == newest, found.leader_epoch))
        # In the middle of a batch; behind the end, where nothing is yet; and beyond it.
        end = batches[-1].next_offset
        for offset in (begin.offset + 1, end, end + 1):
            (answer,) = fetch(connection, {partition: offset}).responses[0].partitions
            # An error comes with -1, which must not depend on how far others have brought the partition.
            watermark = answer.high_watermark - end if answer.error_code == 0 else answer.high_watermark
            seen.append((answer.error_code, len(bytes(answer.records)) > 0, watermark))
        seen += bounded(connection, partition, begin.offset)
    return seen


def as_seen(batch: Batch, begin: int) -> Any:
    """A batch without its times, and the sequence number, which means nothing without a producer id."""
    records: list[Any] = []
    for offset, _, key, value in iter_records(batch):
        record = decode_key_and_value(key, value)
        if isinstance(record, OffsetCommitRecord):
            committed = None if record.value is None else record.value.offset
            records.append((offset - begin, record.partition, committed))
        else:
            assert isinstance(record, GroupMetadataRecord)
            records.append((offset - begin, "group", record.value is None))
    fixed = (batch.attributes, batch.magic, batch.producer_id, batch.producer_epoch)
    return batch.base_offset - begin, batch.count, batch.leader_epoch, fixed, records


def ends(connection: RawConnection, partition: int, begin: int, *, committed: bool) -> Any:
    found = list_offset(connection, partition, LATEST, committed=committed)
    start = list_offset(connection, partition, EARLIEST, committed=committed)
    (answer,) = (
        fetch(connection, {partition: found.offset}, isolation_level=int(committed)).responses[0].partitions
    )
    return (
        (found.error_code, found.offset - begin, found.timestamp, found.leader_epoch),
        (start.error_code, start.offset, start.timestamp, start.leader_epoch),
        (answer.error_code, answer.high_watermark - begin, answer.last_stable_offset - begin),
        (answer.log_start_offset, answer.aborted_transactions, bytes(answer.records)),
    )


def bounded(connection: RawConnection, partition: int, offset: int) -> Iterator[tuple[int, int]]:
    """How many whole batches come with bounds of the answer that are too small for any but the first one."""
    for max_bytes in (-1, 0, 1):
        (answer,) = fetch(connection, {partition: offset}, max_bytes=max_bytes).responses[0].partitions
        yield answer.error_code, len(list(whole_batches(bytes(answer.records))))


def whole_batches(data: bytes) -> Iterator[Batch]:
    """A broker may cut the last batch of an answer."""
    try:
        yield from iter_batches(data)
    except IncompleteBatch:
        return
