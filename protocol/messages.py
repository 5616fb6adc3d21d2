# SPDX-License-Identifier: Apache-2.0
"""kafka-python's messages, wrapped in this one place, for every API that is served.

The classes are kafka-python's: fields by snake-case name as keyword arguments, nested classes as attributes
(`MetadataResponse.MetadataResponseTopic`), uuids as `uuid.UUID` or None, authorized operations as a set of bits or
None. Give every array of a new message a list of its own: where one is left out, kafka-python hands out the same
default list to all messages.

Importing this module imports all of kafka-python, which takes a fifth of a second: `protocol.codecs` does it when
the first message is not hot.
"""

from collections import Counter
from collections.abc import Generator
from functools import cache
from typing import Any, Final

from kafka.protocol.admin import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    ListGroupsRequest,
    ListGroupsResponse,
)
from kafka.protocol.consumer import (
    FetchRequest,
    FetchResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from kafka.protocol.metadata import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    MetadataRequest,
    MetadataResponse,
)
from kafka.protocol.producer import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    ProduceRequest,
    ProduceResponse,
)

from protocol.apis import ApiKey
from protocol.bounds import ITEMS_MAX
from protocol.errors import ErrorCode
from protocol.reader import StepReader, read_message, struct_reader
from protocol.wire import MAX_INT32
from protocol.writer import Writer

# The classes of the hot APIs are in CLASSES only: their names belong to `protocol.hot`.
__all__ = [
    "CLASSES",
    "ApiVersionsRequest",
    "ApiVersionsResponse",
    "CreatePartitionsRequest",
    "CreatePartitionsResponse",
    "CreateTopicsRequest",
    "CreateTopicsResponse",
    "DeleteGroupsRequest",
    "DeleteGroupsResponse",
    "DeleteTopicsRequest",
    "DeleteTopicsResponse",
    "DescribeClusterRequest",
    "DescribeClusterResponse",
    "DescribeConfigsRequest",
    "DescribeConfigsResponse",
    "DescribeGroupsRequest",
    "DescribeGroupsResponse",
    "FetchRequest",
    "FetchResponse",
    "FindCoordinatorRequest",
    "FindCoordinatorResponse",
    "IncrementalAlterConfigsRequest",
    "IncrementalAlterConfigsResponse",
    "InitProducerIdRequest",
    "InitProducerIdResponse",
    "ListGroupsRequest",
    "ListGroupsResponse",
    "ListOffsetsRequest",
    "ListOffsetsResponse",
    "MetadataRequest",
    "MetadataResponse",
    "OffsetDeleteRequest",
    "OffsetDeleteResponse",
    "ProduceRequest",
    "ProduceResponse",
    "decode_request",
    "decode_request_in_steps",
    "decode_response",
    "encode_request",
    "encode_response_body",
    "encode_response_in_steps",
]

CLASSES: Final[dict[ApiKey, tuple[Any, Any]]] = {
    ApiKey.PRODUCE: (ProduceRequest, ProduceResponse),
    ApiKey.FETCH: (FetchRequest, FetchResponse),
    ApiKey.LIST_OFFSETS: (ListOffsetsRequest, ListOffsetsResponse),
    ApiKey.METADATA: (MetadataRequest, MetadataResponse),
    ApiKey.OFFSET_COMMIT: (OffsetCommitRequest, OffsetCommitResponse),
    ApiKey.OFFSET_FETCH: (OffsetFetchRequest, OffsetFetchResponse),
    ApiKey.FIND_COORDINATOR: (FindCoordinatorRequest, FindCoordinatorResponse),
    ApiKey.JOIN_GROUP: (JoinGroupRequest, JoinGroupResponse),
    ApiKey.HEARTBEAT: (HeartbeatRequest, HeartbeatResponse),
    ApiKey.LEAVE_GROUP: (LeaveGroupRequest, LeaveGroupResponse),
    ApiKey.SYNC_GROUP: (SyncGroupRequest, SyncGroupResponse),
    ApiKey.DESCRIBE_GROUPS: (DescribeGroupsRequest, DescribeGroupsResponse),
    ApiKey.LIST_GROUPS: (ListGroupsRequest, ListGroupsResponse),
    ApiKey.API_VERSIONS: (ApiVersionsRequest, ApiVersionsResponse),
    ApiKey.CREATE_TOPICS: (CreateTopicsRequest, CreateTopicsResponse),
    ApiKey.DELETE_TOPICS: (DeleteTopicsRequest, DeleteTopicsResponse),
    ApiKey.INIT_PRODUCER_ID: (InitProducerIdRequest, InitProducerIdResponse),
    ApiKey.DESCRIBE_CONFIGS: (DescribeConfigsRequest, DescribeConfigsResponse),
    ApiKey.CREATE_PARTITIONS: (CreatePartitionsRequest, CreatePartitionsResponse),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse),
    ApiKey.DELETE_GROUPS: (DeleteGroupsRequest, DeleteGroupsResponse),
    ApiKey.OFFSET_DELETE: (OffsetDeleteRequest, OffsetDeleteResponse),
    ApiKey.DESCRIBE_CLUSTER: (DescribeClusterRequest, DescribeClusterResponse),
}
"""API → kafka-python's classes of its request and its response."""


def decode_request(api_key: ApiKey, version: int, body: bytes, pos: int = 0) -> Any:
    """Read the request whose body starts at `pos`. Raises ProtocolError only, TooManyItems above ITEMS_MAX."""
    return _all_at_once(decode_request_in_steps(api_key, version, body, pos))


def decode_request_in_steps(
    api_key: ApiKey, version: int, body: bytes, pos: int = 0
) -> Generator[None, None, Any]:
    """Read the request whose body starts at `pos`, giving way every hundred items.

    Raises ProtocolError only, TooManyItems above ITEMS_MAX.
    """
    cls = CLASSES[api_key][0]
    return read_message(_reader(cls, version), cls.name, body, pos, ITEMS_MAX)


def decode_response(api_key: ApiKey, version: int, body: bytes, pos: int = 0) -> Any:
    """Read the response whose body starts at `pos`. Raises ProtocolError only.

    A response to ApiVersions that says UNSUPPORTED_VERSION is in the format of v0 (ApiVersionsResponse.parse).
    """
    if api_key == ApiKey.API_VERSIONS and body[pos : pos + 2] == _UNSUPPORTED_VERSION:
        version = 0
    cls = CLASSES[api_key][1]
    return _all_at_once(read_message(_reader(cls, version), cls.name, body, pos))


def encode_request(api_key: ApiKey, version: int, message: Any) -> bytes:
    """Return the body of a request."""
    return _encode(CLASSES[api_key][0], version, message)


def encode_response_body(api_key: ApiKey, version: int, message: Any) -> bytes:
    """Return the body of a response."""
    return _encode(CLASSES[api_key][1], version, message)


def encode_response_in_steps(
    api_key: ApiKey, version: int, message: Any, errors: Counter[int], bytes_max: int = MAX_INT32
) -> Generator[None, None, list[bytes]]:
    """Write the body of a response in steps (see `protocol.writer`); returns its pieces, to be sent in order.

    Of a hot api the response is kafka-python's, too. The error codes in its arrays are counted in `errors`.
    Raises MessageTooLarge beyond `bytes_max`.
    """
    cls = CLASSES[api_key][1]
    writer = Writer(version, flexible=cls.flexible_version_q(version), bytes_max=bytes_max, errors=errors)
    return writer.write(cls._struct, message)


_UNSUPPORTED_VERSION: Final = ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big")


@cache
def _reader(cls: Any, version: int) -> StepReader:
    return struct_reader(cls._struct, version, flexible=cls.flexible_version_q(version), cls=cls)


def _all_at_once(steps: Generator[None, None, Any]) -> Any:
    try:
        while True:
            next(steps)
    except StopIteration as done:
        return done.value


def _encode(cls: Any, version: int, message: Any) -> bytes:
    if not isinstance(message, cls):
        raise TypeError(f"{type(message).__name__} is not a {cls.name}")
    return bytes(message.encode(version=version))
