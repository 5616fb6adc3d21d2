# SPDX-License-Identifier: Apache-2.0
"""Requests as bytes, and the topics that they are about."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from kafka.protocol.admin import DeleteTopicsRequest, DeleteTopicsResponse
from kafka.protocol.consumer.fetch import FetchRequest, FetchResponse
from kafka.protocol.producer.produce import ProduceRequest, ProduceResponse
from kafka.record.default_records import DefaultRecordBatchBuilder

from bench import wire
from bench.cluster import Address, Peer, Unprepared
from bench.wire import Api, Call

FETCH: Final = Api("Fetch", FetchRequest, FetchResponse)
PRODUCE: Final = Api("Produce", ProduceRequest, ProduceResponse)
DELETE_TOPICS: Final = Api("DeleteTopics", DeleteTopicsRequest, DeleteTopicsResponse)
FETCH_VERSION: Final = 11
PRODUCE_VERSION: Final = 11
DELETE_TOPICS_VERSION: Final = 3

LARGE: Final = "forwarded-large"
SMALL: Final = "forwarded-small"
RECORD_BYTES: Final = 1_000
RECORDS_IN_BATCH: Final = 16
FETCH_BYTES: Final = 1 << 20
TIMEOUT_S: Final = 30.0


def produce(topic: str, records: int) -> Call:
    """A Produce of one batch to the topic's only partition, with acks=1."""
    partition = ProduceRequest.TopicProduceData.PartitionProduceData(index=0, records=_batch(records))
    data = ProduceRequest.TopicProduceData(name=topic, partition_data=[partition])
    request = ProduceRequest(transactional_id=None, acks=1, timeout_ms=10_000, topic_data=[data])
    return wire.encode(PRODUCE, PRODUCE_VERSION, request)


def _batch(records: int) -> bytes:
    builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1 << 20)
    for number in range(records):
        builder.append(number, int(time.time() * 1000), None, bytes(RECORD_BYTES), [])
    return bytes(builder.build())


def fetch(topic: str, size: int) -> Call:
    """A Fetch from the beginning of the topic's only partition, of at most so many bytes, or a batch."""
    partition = FetchRequest.FetchTopic.FetchPartition(
        partition=0, current_leader_epoch=-1, fetch_offset=0, log_start_offset=-1, partition_max_bytes=size
    )
    request = FetchRequest(
        replica_id=-1,
        max_wait_ms=100,
        min_bytes=1,
        max_bytes=size,
        isolation_level=0,
        session_id=0,
        session_epoch=-1,
        topics=[FetchRequest.FetchTopic(topic=topic, partitions=[partition])],
        forgotten_topics_data=[],
        rack_id="",
    )
    return wire.encode(FETCH, FETCH_VERSION, request)


def fill(broker: Address, records: int) -> None:
    """Create both topics: LARGE has so many records in batches of a producer's default size, SMALL one."""
    with Peer(broker, TIMEOUT_S) as peer:
        for topic, count, each in ((LARGE, records // RECORDS_IN_BATCH, RECORDS_IN_BATCH), (SMALL, 1, 1)):
            create(peer, topic)
            call = produce(topic, each)
            for reply in peer.pipeline(call for _ in range(count)):
                call.decode_good(reply)


def create(peer: Peer, topic: str) -> None:
    """Create a topic of one partition, and wait until the broker leads it. Raises Unprepared."""
    request = wire.CREATE_TOPICS.request
    made = request.CreatableTopic(
        name=topic, num_partitions=1, replication_factor=1, assignments=[], configs=[]
    )
    call = wire.encode(wire.CREATE_TOPICS, 2, request(topics=[made], timeout_ms=10_000, validate_only=False))
    call.decode_good(peer.ask(call))
    # Metadata names a leader before that one knows of it.
    fetched = fetch(topic, 1)
    deadline = time.monotonic() + TIMEOUT_S
    while wire.error_codes(fetched.decode(peer.ask(fetched))):
        if time.monotonic() > deadline:
            raise Unprepared(f"the topic {topic} has no leader")
        time.sleep(0.02)


@contextmanager
def new_topic(broker: Address, topic: str) -> Iterator[str]:
    """A topic of one partition that is deleted afterwards; its name. Raises Unprepared, BadReply."""
    with Peer(broker, TIMEOUT_S) as peer:
        create(peer, topic)
        yield topic
        _delete(peer, topic)


def _delete(peer: Peer, topic: str) -> None:
    request: Any = DeleteTopicsRequest(topic_names=[topic], timeout_ms=10_000)
    call = wire.encode(DELETE_TOPICS, DELETE_TOPICS_VERSION, request)
    call.decode_good(peer.ask(call))
