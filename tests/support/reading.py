# SPDX-License-Identifier: Apache-2.0
"""Reads partitions of `__consumer_offsets` with raw requests, as a consumer does, and what their records mean."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from protocol.kafka_python_messages import FetchRequest, ListOffsetsRequest
from storage.format.batch import Batch, iter_batches
from storage.format.record_decoder import RecordDecoder
from storage.format.records import OffsetCommitRecord, TopicOffsetCommits
from storage.format.transaction_replay import LogReplay
from tests.support.raw import NONE, RawConnection

OFFSETS_TOPIC = "__consumer_offsets"
EARLIEST, LATEST = -2, -1


def fetch_request(offsets: Mapping[int, int], *, wait_ms: int = 0, **more: Any) -> FetchRequest:
    """A Fetch from these offsets by partition; `more` are other fields."""
    rows = [
        FetchRequest.FetchTopic.FetchPartition(
            partition=partition,
            current_leader_epoch=-1,
            fetch_offset=offset,
            last_fetched_epoch=-1,
            log_start_offset=-1,
            partition_max_bytes=1 << 20,
        )
        for partition, offset in offsets.items()
    ]
    fields = {
        "replica_id": -1,
        "max_wait_ms": wait_ms,
        "min_bytes": 1,
        "max_bytes": 50 << 20,
        "isolation_level": 0,
        "session_id": 0,
        "session_epoch": -1,
        "rack_id": "",
        "topics": [FetchRequest.FetchTopic(topic=OFFSETS_TOPIC, partitions=rows)],
        "forgotten_topics_data": [],
        **more,
    }
    return FetchRequest(**fields)


def fetch(
    connection: RawConnection, offsets: Mapping[int, int], *, wait_ms: int = 0, version: int = 12, **more: Any
) -> Any:
    """One Fetch, from these offsets by partition; returns its answer."""
    return connection.call(fetch_request(offsets, wait_ms=wait_ms, **more), version)


def read(
    connection: RawConnection, partition: int, offset: int, *, wait_ms: int = 0, **more: Any
) -> list[Batch]:
    """The batches that one Fetch brings, with their checksums verified."""
    (topic,) = fetch(connection, {partition: offset}, wait_ms=wait_ms, **more).responses
    (answer,) = topic.partitions
    assert answer.error_code == NONE, f"partition {partition}, offset {offset}: {answer.error_code}"
    return list(iter_batches(bytes(answer.records), check=True))


def read_all(connection: RawConnection, partition: int, offset: int = 0) -> Iterator[Batch]:
    """All batches from an offset on, to the end."""
    while batches := read(connection, partition, offset):
        yield from batches
        offset = batches[-1].next_offset


def list_request(partitions: Iterable[int], timestamp: int, *, committed: bool = False) -> ListOffsetsRequest:
    """A ListOffsets for one timestamp in these partitions."""
    kind = ListOffsetsRequest.ListOffsetsTopic
    rows = [
        kind.ListOffsetsPartition(partition_index=partition, current_leader_epoch=-1, timestamp=timestamp)
        for partition in partitions
    ]
    topic = kind(name=OFFSETS_TOPIC, partitions=rows)
    return ListOffsetsRequest(replica_id=-1, isolation_level=int(committed), topics=[topic])


def list_offset(
    connection: RawConnection, partition: int, timestamp: int, *, version: int = 7, committed: bool = False
) -> Any:
    """ListOffsets of one partition; returns the partition's answer."""
    return (
        connection.call(list_request([partition], timestamp, committed=committed), version)
        .topics[0]
        .partitions[0]
    )


class Follower:
    """Keeps the committed offsets of all groups from what is read, as a node does when it loads a partition."""

    def __init__(self) -> None:
        self.offsets: dict[str, dict[tuple[str, int], int]] = {}
        self._replay = LogReplay(RecordDecoder())

    def take(self, batches: Iterator[Batch]) -> None:
        """Apply what was read."""
        for batch in batches:
            for record in self._replay.replay(batch):
                if isinstance(record, TopicOffsetCommits):
                    group = self.offsets.setdefault(record.group, {})
                    group |= {(record.topic, p): value.offset for p, value in record.values.items()}
                elif isinstance(record, OffsetCommitRecord):
                    self._one(record)

    def _one(self, record: OffsetCommitRecord) -> None:
        group = self.offsets.setdefault(record.group, {})
        if record.value is None:
            group.pop((record.topic, record.partition), None)
        else:
            group[record.topic, record.partition] = record.value.offset
