# SPDX-License-Identifier: Apache-2.0
"""Times the codecs of the hot path: `python -m tests.protocol.measure`. The least of many runs, in microseconds."""

import sys
import timeit
from collections.abc import Callable, Iterator
from struct import pack
from typing import Any, Final

from protocol.apis import ApiKey
from protocol.framing import FrameReader
from protocol.headers import RequestHeader, decode_request_header, encode_request_header, encode_response
from protocol.hot import (
    HeartbeatRequest,
    HeartbeatResponse,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from protocol.message_codecs import find_message_codec
from protocol.newtypes import GroupId, MemberId, Offset

GROUP: Final = GroupId("group-0001")
MEMBER: Final = MemberId("consumer-group-0001-1-5f0c7e1e-8f3e-4e1b-9b57-1a2b3c4d5e6f")
TOPIC_ID: Final = bytes(range(16))

Exchange = tuple[str, ApiKey, int, Any, Any]


def heartbeats() -> Iterator[Exchange]:
    """Heartbeats before and after KIP-482."""
    for version in (3, 4):
        yield "", ApiKey.HEARTBEAT, version, HeartbeatRequest(GROUP, 5, MEMBER), HeartbeatResponse()


def commits(count: int) -> Iterator[Exchange]:
    """Commits of `count` partitions of a topic."""
    asked = [OffsetCommitRequestPartition(index, Offset(index * 1000), 3, -1, "") for index in range(count)]
    answered = [OffsetCommitResponsePartition(index, 0) for index in range(count)]
    request = OffsetCommitRequest(
        GROUP, 5, MEMBER, topics=[OffsetCommitRequestTopic("orders", TOPIC_ID, asked)]
    )
    response = OffsetCommitResponse(0, [OffsetCommitResponseTopic("orders", TOPIC_ID, answered)])
    for version in (7, 8, 9, 10):
        yield f", partitions: {count}", ApiKey.OFFSET_COMMIT, version, request, response


def fetches(count: int) -> Iterator[Exchange]:
    """Fetches of `count` partitions of a topic."""
    indexes = list(range(count))
    old = [OffsetFetchResponsePartition(index, Offset(index * 1000), 3, "") for index in indexes]
    new = [OffsetFetchResponsePartitions(index, Offset(index * 1000), 3, "") for index in indexes]
    request = OffsetFetchRequest(
        GROUP,
        [OffsetFetchRequestTopic("orders", indexes)],
        [OffsetFetchRequestGroup(GROUP, MEMBER, -1, [OffsetFetchRequestTopics("orders", TOPIC_ID, indexes)])],
    )
    response = OffsetFetchResponse(
        topics=[OffsetFetchResponseTopic("orders", old)],
        groups=[OffsetFetchResponseGroup(GROUP, [OffsetFetchResponseTopics("orders", TOPIC_ID, new)])],
    )
    for version in (7, 8, 9, 10):
        yield f", partitions: {count}", ApiKey.OFFSET_FETCH, version, request, response


def measure(name: str, call: Callable[[], object]) -> None:
    """Print the least time of a call."""
    timer = timeit.Timer(call)
    number = max(1, timer.autorange()[0] // 20)
    least = min(timer.repeat(repeat=60, number=number)) / number
    sys.stdout.write(f"{least * 1e6:8.2f} µs  {name}\n")


def measure_exchange(exchange: Exchange) -> None:
    """Print what the server does for one request: decode it and encode the answer."""
    note, api, version, request, response = exchange
    codec = find_message_codec(api, version)
    body = codec.encode_request(request)
    measure(f"{api.name} v{version} request decode{note}", lambda: codec.decode_request(body, 0))
    measure(f"{api.name} v{version} response encode{note}", lambda: codec.encode_response(response))


def main() -> None:
    """Print all figures."""
    frame = encode_request_header(RequestHeader(12, 4, 77, "consumer-1"), flexible=True) + bytes(80)
    stream = pack(">i", len(frame)) + frame
    reader = FrameReader(1 << 20)
    measure("one whole frame", lambda: reader.feed(stream))
    measure("request header v2 decode", lambda: decode_request_header(frame, True))
    measure("response frame", lambda: encode_response(77, b"\0\0\0\0\0\0\0", flexible=True))
    for exchange in heartbeats():
        measure_exchange(exchange)
    for count in (1, 100):
        for exchange in (*commits(count), *fetches(count)):
            measure_exchange(exchange)


if __name__ == "__main__":
    main()
