# SPDX-License-Identifier: Apache-2.0
"""Makes queries about a client's permissions for the client's broker, and reads the broker's responses.

A permission is granted only if a response shows that the broker grants it. Any broker can be asked, even if it does
not coordinate the group, since it checks permissions first. A Heartbeat without a member and an OffsetDelete without
topics change nothing, and show whether the group may be read and deleted. For topics, and for the cluster, the broker
reports the allowed operations itself (KIP-430).
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from operator import attrgetter
from typing import Any, Final, NamedTuple
from uuid import UUID

from coordinator.authorization.permissions import (
    DENIED,
    DESCRIBE_CLUSTER,
    Decisions,
    Operation,
    Permission,
    ResourceType,
    group_permission,
    topic_permission,
)
from coordinator.authorization.rule import NONE
from protocol.apis import ApiKey
from protocol.client_frames import LENGTH_BYTES, decode_answer, encode_request
from protocol.client_ids import GATEWAY_CLIENT_ID
from protocol.errors import ErrorCode
from protocol.headers import RequestHeader
from protocol.hot.heartbeat import HeartbeatRequest
from protocol.kafka_python_messages import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    MetadataRequest,
    MetadataResponse,
    OffsetDeleteRequest,
)
from protocol.message_codecs import find_message_codec
from protocol.newtypes import GroupId, MemberId

CORRELATION_ID: Final = -7
NO_NODE: Final = MemberId("")

HEARTBEAT_VERSION: Final = 0
OFFSET_DELETE_VERSION: Final = 0
DESCRIBE_GROUPS_VERSION: Final = 0
METADATA_BY_NAME_VERSION: Final = 8
METADATA_BY_ID_VERSION: Final = 12

# The errors of every request to a group's coordinator that come after the check of permissions.
_COORDINATION: Final = frozenset(
    {
        NONE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.INVALID_GROUP_ID,
        ErrorCode.GROUP_ID_NOT_FOUND,
    }
)
ALLOWED: Final[Mapping[ApiKey, frozenset[ErrorCode]]] = {
    ApiKey.HEARTBEAT: _COORDINATION
    | {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    },
    ApiKey.OFFSET_DELETE: _COORDINATION | {ErrorCode.NON_EMPTY_GROUP},
    ApiKey.DESCRIBE_GROUPS: _COORDINATION,
    # With one of these errors the operations of the topic state what is allowed.
    ApiKey.METADATA: frozenset(
        {
            NONE,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            ErrorCode.LEADER_NOT_AVAILABLE,
        }
    ),
}
"""The error codes, by the api of the query, that show that the client has the permission.

KafkaApis checks permissions first, so an error of a later step is one of them. Every other code is the decision itself:
the one of DENIED, or one that stands for "not known".
"""

_KNOWN_CODES: Final = frozenset(map(int, ErrorCode))

UNKNOWN: Final = ErrorCode.UNKNOWN_SERVER_ERROR
"""The decision if a broker's response has no code that states why the permission is not known."""


class PermissionQuery(NamedTuple):
    """A request, whole with its length, and the function that reads its response."""

    frame: bytes
    read: Callable[[bytes], Decisions]


def permission_queries(permissions: Iterable[Permission]) -> Iterator[PermissionQuery]:
    """Yield the queries about these permissions, each made when it is taken; one may cover several."""
    described: list[str] = []
    names: list[str] = []
    ids: list[bytes] = []
    for permission in dict.fromkeys(permissions):
        if permission.resource is ResourceType.CLUSTER:
            yield _about_cluster()
        elif permission.resource is ResourceType.TOPIC:
            if isinstance(permission.name, bytes):
                ids.append(permission.name)
            else:
                names.append(permission.name)
        elif permission.operation is Operation.DESCRIBE:
            described.append(str(permission.name))
        else:
            yield _about_group(permission)
    if described:
        yield _about_groups(described)
    if names:
        yield _about_topics(dict.fromkeys(names))
    if ids:
        yield _about_topic_ids(dict.fromkeys(ids))


def _query(api: ApiKey, version: int, request: object, decide: Callable[[Any], Decisions]) -> PermissionQuery:
    codec = find_message_codec(api, version)
    frame = encode_request(codec, RequestHeader(api, version, CORRELATION_ID, GATEWAY_CLIENT_ID), request)
    return PermissionQuery(frame, lambda answer: decide(decode_answer(codec, api, answer, LENGTH_BYTES)))


def _about_group(permission: Permission) -> PermissionQuery:
    """Return the query whether a group may be read, or deleted."""
    name = str(permission.name)
    request: object
    if permission.operation is Operation.READ:
        api, version = ApiKey.HEARTBEAT, HEARTBEAT_VERSION
        request = HeartbeatRequest(group_id=GroupId(name), generation_id=-1, member_id=NO_NODE)
    else:
        assert permission.operation is Operation.DELETE, "nothing else can be found out"
        api, version = ApiKey.OFFSET_DELETE, OFFSET_DELETE_VERSION
        request = OffsetDeleteRequest(version=version, group_id=name, topics=[])
    return _query(api, version, request, lambda response: {permission: _decision(api, response.error_code)})


def _about_groups(names: Collection[str]) -> PermissionQuery:
    """Return the query whether groups may be described."""
    api, version = ApiKey.DESCRIBE_GROUPS, DESCRIBE_GROUPS_VERSION

    def decide(response: DescribeGroupsResponse) -> Decisions:
        codes = {group.group_id: group.error_code for group in response.groups}
        return {
            group_permission(Operation.DESCRIBE, name): _decision(api, codes.get(name, UNKNOWN))
            for name in names
        }

    return _query(api, version, DescribeGroupsRequest(version=version, groups=list(names)), decide)


def _about_cluster() -> PermissionQuery:
    """Return the query whether the cluster may be described; a broker that does not know gives no operations."""

    def decide(response: MetadataResponse) -> Decisions:
        return {DESCRIBE_CLUSTER: _by_operations(DESCRIBE_CLUSTER, response.authorized_operations)}

    return _metadata(METADATA_BY_NAME_VERSION, [], decide, of_cluster=True)


def _about_topics(names: Collection[str]) -> PermissionQuery:
    """Return the query about operations on topics, which may or may not exist."""
    asked = [{"name": name} for name in names]
    return _metadata(METADATA_BY_NAME_VERSION, asked, partial(_of_topics, names, attrgetter("name")))


def _about_topic_ids(ids: Collection[bytes]) -> PermissionQuery:
    """Return the query about operations on topics by id; for an id without a topic the decision is not known."""
    asked = [{"topic_id": UUID(bytes=each), "name": None} for each in ids]
    return _metadata(METADATA_BY_ID_VERSION, asked, partial(_of_topics, ids, _topic_id))


def _metadata(
    version: int,
    topics: Iterable[Mapping[str, Any]],
    decide: Callable[[MetadataResponse], Decisions],
    *,
    of_cluster: bool = False,
) -> PermissionQuery:
    topic = MetadataRequest.MetadataRequestTopic
    request = MetadataRequest(
        version=version,
        topics=[topic(version=version, **fields) for fields in topics],
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=of_cluster,
        include_topic_authorized_operations=True,
    )
    return _query(ApiKey.METADATA, version, request, decide)


def _topic_id(topic: MetadataResponse.MetadataResponseTopic) -> bytes | None:
    found: UUID | None = topic.topic_id  # whatever kafka-python's stub says
    return None if found is None else found.bytes


def _of_topics(
    names: Iterable[str | bytes],
    name_of: Callable[[MetadataResponse.MetadataResponseTopic], str | bytes | None],
    response: MetadataResponse,
) -> Decisions:
    """Return the decisions on each topic; for a topic that was not found they are not known."""
    found = {name_of(topic): topic for topic in response.topics}
    decisions: Decisions = {}
    for name in names:
        topic = found.get(name)
        error = UNKNOWN if topic is None else _decision(ApiKey.METADATA, topic.error_code)
        for operation in (Operation.READ, Operation.DESCRIBE):
            permission = topic_permission(operation, name)
            if topic is None or error is not NONE:
                decisions[permission] = error
            else:
                decisions[permission] = _by_operations(permission, topic.authorized_operations)
    return decisions


def _by_operations(permission: Permission, operations: Collection[int] | None) -> ErrorCode:
    """Decide by the operations that a broker reports for the resource, or None if it does not know them."""
    if operations is None:
        return UNKNOWN
    return NONE if permission.operation in operations else DENIED[permission.resource]


def _decision(api: ApiKey, error_code: int) -> ErrorCode:
    """Return NONE if the code shows that the client has the permission, else the code."""
    if error_code not in _KNOWN_CODES:
        return UNKNOWN  # of a newer broker
    error = ErrorCode(error_code)
    return NONE if error in ALLOWED[api] else error
