# SPDX-License-Identifier: Apache-2.0
"""Requests as frames, replies as messages, and what is wrong with a reply."""

import io
import struct
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from kafka.errors import for_code
from kafka.protocol.admin.groups import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from kafka.protocol.admin.topics import CreateTopicsRequest, CreateTopicsResponse
from kafka.protocol.consumer.group import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from kafka.protocol.metadata.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafka.protocol.metadata.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kafka.protocol.metadata.metadata import MetadataRequest, MetadataResponse

CLIENT_ID: Final = "bench"
LENGTH: Final = struct.Struct(">i")
CORRELATION_ID_AT: Final = (
    8  # in a request frame: length (4), api key (2), api version (2), correlation id (4)
)

# Errors that pass by themselves while a coordinator is elected or loads, or a topic becomes known (Kafka's
# codes): UNKNOWN_TOPIC_OR_PARTITION, LEADER_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS,
# COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, UNKNOWN_TOPIC_ID.
TRANSIENT: Final = frozenset({3, 5, 14, 15, 16, 100})


class Api(NamedTuple):
    """One Kafka api: its name and the codec's classes for it."""

    name: str
    request: Any
    response: Any

    @property
    def key(self) -> int:
        """The api key on the wire."""
        return int(self.request.API_KEY)


API_VERSIONS: Final = Api("ApiVersions", ApiVersionsRequest, ApiVersionsResponse)
METADATA: Final = Api("Metadata", MetadataRequest, MetadataResponse)
CREATE_TOPICS: Final = Api("CreateTopics", CreateTopicsRequest, CreateTopicsResponse)
FIND_COORDINATOR: Final = Api("FindCoordinator", FindCoordinatorRequest, FindCoordinatorResponse)
OFFSET_COMMIT: Final = Api("OffsetCommit", OffsetCommitRequest, OffsetCommitResponse)
OFFSET_FETCH: Final = Api("OffsetFetch", OffsetFetchRequest, OffsetFetchResponse)
JOIN_GROUP: Final = Api("JoinGroup", JoinGroupRequest, JoinGroupResponse)
SYNC_GROUP: Final = Api("SyncGroup", SyncGroupRequest, SyncGroupResponse)
HEARTBEAT: Final = Api("Heartbeat", HeartbeatRequest, HeartbeatResponse)
LEAVE_GROUP: Final = Api("LeaveGroup", LeaveGroupRequest, LeaveGroupResponse)
DESCRIBE_GROUPS: Final = Api("DescribeGroups", DescribeGroupsRequest, DescribeGroupsResponse)
DELETE_GROUPS: Final = Api("DeleteGroups", DeleteGroupsRequest, DeleteGroupsResponse)

APIS: Final = (
    API_VERSIONS,
    METADATA,
    CREATE_TOPICS,
    FIND_COORDINATOR,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    JOIN_GROUP,
    SYNC_GROUP,
    HEARTBEAT,
    LEAVE_GROUP,
    DESCRIBE_GROUPS,
    DELETE_GROUPS,
)


class BadReply(Exception):
    """A reply that cannot be read, holds error codes, or is not what was asked for."""

    def __init__(self, reason: str, codes: frozenset[int] = frozenset()) -> None:
        super().__init__(reason)
        self.codes = codes

    @property
    def transient(self) -> bool:
        """Whether all that is wrong may pass by itself (see TRANSIENT)."""
        return bool(self.codes) and self.codes <= TRANSIENT


class Call(NamedTuple):
    """A request as a whole frame, and how to read its reply."""

    api: Api
    version: int
    frame: bytes

    def decode(self, reply: bytes) -> Any:
        """Decode a reply (without its length bytes). Raises BadReply when it cannot be read."""
        return decode(self.api, self.version, reply)

    def decode_good(self, reply: bytes) -> Any:
        """Decode a reply and refuse every error code in it. Raises BadReply."""
        message = self.decode(reply)
        refuse_errors(self.api, message)
        return message


def encode(api: Api, version: int, message: Any) -> Call:
    """Encode `message` as a frame with correlation id 0."""
    message.with_header(correlation_id=0, client_id=CLIENT_ID)
    return Call(api, version, bytes(message.encode(version=version, header=True, framed=True)))


def with_correlation_id(frame: bytes, correlation_id: int) -> bytes:
    """The same request frame under another correlation id."""
    return frame[:CORRELATION_ID_AT] + LENGTH.pack(correlation_id) + frame[CORRELATION_ID_AT + 4 :]


def decode(api: Api, version: int, reply: bytes) -> Any:
    """Decode a reply (header and body, without the length bytes). Raises BadReply when it cannot be read."""
    stream = io.BytesIO(reply)
    try:
        api.response.parse_header(stream, version=version)
        return api.response.decode(stream.read(), version=version)
    except (ValueError, IndexError, TypeError, struct.error) as error:
        raise BadReply(f"{api.name} v{version}: the reply cannot be decoded: {error}") from error


def error_codes(message: Any) -> frozenset[int]:
    """All error codes other than 0 anywhere in a decoded message."""
    return frozenset(code for code in _codes_in(message.to_dict(json=False)) if code)


def _codes_in(value: object) -> Iterator[int]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            if name == "error_code" and isinstance(inner, int):
                yield inner
            else:
                yield from _codes_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _codes_in(inner)


def refuse_errors(api: Api, message: Any) -> None:
    """Raise BadReply when the message holds any error code."""
    codes = error_codes(message)
    if codes:
        raise BadReply(f"{api.name}: {', '.join(error_name(code) for code in sorted(codes))}", codes)


def error_name(code: int) -> str:
    """Kafka's name of an error code, with the code."""
    return f"{for_code(code).message} ({code})"
