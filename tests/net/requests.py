# SPDX-License-Identifier: Apache-2.0
"""Requests as frames: a whole one of every api and version, and those that the tests send again and again."""

import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

from protocol import hot
from protocol.apis import ApiKey
from protocol.headers import RequestHeader, encode_request_header
from protocol.message_codecs import find_message_codec
from protocol.newtypes import GroupId, MemberId, Offset
from tests.protocol.schemas import HOT_APIS, Case, sample, to_hot, to_kafka_python
from tests.support.apis import FIRST_FLEXIBLE, SUPPORTED

TOPIC = "orders"
OTHER_TOPIC = "payments"
NOT_SERVED = 4
"""An api that only brokers speak among themselves, LeaderAndIsr."""


class Request(NamedTuple):
    """One version of one api."""

    api: ApiKey
    version: int

    def __str__(self) -> str:
        return f"{self.api.name}-v{self.version}"


EVERY_REQUEST = [
    Request(api, version)
    for api, versions in SUPPORTED.items()
    for version in range(versions.min, versions.max + 1)
]


def framed(body: bytes) -> bytes:
    """A frame: its length and its body."""
    return struct.pack(">i", len(body)) + body


def header(api: int, version: int, correlation_id: int = 1, client_id: str | None = "test") -> bytes:
    """A request header as this version has it."""
    try:
        flexible = version >= FIRST_FLEXIBLE[ApiKey(api)]
    except (KeyError, ValueError):
        flexible = False
    return encode_request_header(RequestHeader(api, version, correlation_id, client_id), flexible=flexible)


def request(api: ApiKey, version: int, message: Any, correlation_id: int = 1) -> bytes:
    """A whole request frame."""
    body = find_message_codec(api, version).encode_request(message)
    return framed(header(api, version, correlation_id) + body)


def sample_values(api: ApiKey, version: int) -> dict[str, Any]:
    """Small values for every field, an item in every array."""
    case = Case(api, "request", version)
    return sample(case.schema, version)


def sample_request(api: ApiKey, version: int, correlation_id: int = 1) -> bytes:
    """A well-formed request with an item in every array, whatever it means."""
    return build(api, version, sample_values(api, version), correlation_id)


def build(api: ApiKey, version: int, values: Mapping[str, Any], correlation_id: int = 1) -> bytes:
    """The frame of a request with these values, by the schema's field names."""
    case = Case(api, "request", version)
    plain = dict(values)
    if api in HOT_APIS:
        message = to_hot(case.cls.name, case.schema, plain, version)
    else:
        message = to_kafka_python(case.cls, case.schema, plain, version)
    return request(api, version, message, correlation_id)


# --- those that tests use all the time ---


def api_versions(correlation_id: int = 1) -> bytes:
    """The smallest request."""
    return framed(header(ApiKey.API_VERSIONS, 0, correlation_id))


def heartbeat(group: str, member_id: str, generation: int, correlation_id: int = 1) -> bytes:
    message = hot.HeartbeatRequest(
        group_id=GroupId(group), generation_id=generation, member_id=MemberId(member_id)
    )
    return request(ApiKey.HEARTBEAT, 4, message, correlation_id)


def commit(
    group: str,
    offsets: Mapping[int, int],
    correlation_id: int = 1,
    *,
    topic: str = TOPIC,
    metadata: str = "",
    member_id: str = "",
    generation: int = -1,
    version: int = 8,
    retention_ms: int = -1,
) -> bytes:
    """Versions 2 to 4 have a retention time."""
    partitions = [
        hot.OffsetCommitRequestPartition(
            partition_index=partition, committed_offset=Offset(offset), committed_metadata=metadata
        )
        for partition, offset in offsets.items()
    ]
    message = hot.OffsetCommitRequest(
        group_id=GroupId(group),
        generation_id_or_member_epoch=generation,
        member_id=MemberId(member_id),
        retention_time_ms=retention_ms,
        topics=[hot.OffsetCommitRequestTopic(name=topic, partitions=partitions)],
    )
    return request(ApiKey.OFFSET_COMMIT, version, message, correlation_id)


def fetch_offsets(group: str, correlation_id: int = 1, *, version: int = 7) -> bytes:
    message = hot.OffsetFetchRequest(group_id=GroupId(group), topics=None)
    return request(ApiKey.OFFSET_FETCH, version, message, correlation_id)


def fetch_groups(*groups: str, correlation_id: int = 1) -> bytes:
    """The offsets of several groups in one request."""
    wanted = [hot.OffsetFetchRequestGroup(group_id=GroupId(group), topics=None) for group in groups]
    return request(ApiKey.OFFSET_FETCH, 8, hot.OffsetFetchRequest(groups=wanted), correlation_id)


def join(
    group: str,
    member_id: str = "",
    correlation_id: int = 1,
    *,
    instance: str | None = None,
    protocol: str = "range",
    protocol_type: str = "consumer",
    metadata: bytes = b"m",
    session_ms: int = 10_000,
    rebalance_ms: int = 60_000,
    version: int = 9,
) -> bytes:
    message = hot.JoinGroupRequest(
        group_id=GroupId(group),
        member_id=MemberId(member_id),
        group_instance_id=instance,
        protocol_type=protocol_type,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=rebalance_ms,
        protocols=[hot.JoinGroupRequestProtocol(name=protocol, metadata=metadata)],
    )
    return request(ApiKey.JOIN_GROUP, version, message, correlation_id)


def sync(
    group: str,
    member_id: str,
    generation: int,
    correlation_id: int = 1,
    assignments: Mapping[str, bytes] | None = None,
) -> bytes:
    message = hot.SyncGroupRequest(
        group_id=GroupId(group),
        member_id=MemberId(member_id),
        generation_id=generation,
        assignments=[
            hot.SyncGroupRequestAssignment(member_id=MemberId(key), assignment=value)
            for key, value in (assignments or {}).items()
        ],
    )
    return request(ApiKey.SYNC_GROUP, 4, message, correlation_id)


def leave(group: str, *members: str) -> bytes:
    message = hot.LeaveGroupRequest(
        group_id=GroupId(group),
        members=[hot.MemberIdentity(member_id=MemberId(member)) for member in members],
    )
    return request(ApiKey.LEAVE_GROUP, 4, message)


def answer(api: ApiKey, version: int, frame: bytes) -> Any:
    """The decoded response in a frame."""
    codec = find_message_codec(api, version)
    flexible = codec.flexible and api is not ApiKey.API_VERSIONS
    return codec.decode_response(frame, 5 if flexible else 4)
