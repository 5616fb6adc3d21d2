# SPDX-License-Identifier: Apache-2.0
"""What a client may do, asked of the broker that it is connected to, as itself.

Any broker can be asked, whether it coordinates the group or not: permissions are looked at before anything else. A
Heartbeat of nobody and an OffsetDelete of nothing change nothing, and say whether the group may be read and deleted; of
topics, and of the cluster, the broker says itself what is allowed (KIP-430).
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, Final, NamedTuple, TypeAlias
from uuid import UUID

from coordinator.authorization.permissions import (
    DESCRIBE_CLUSTER,
    Operation,
    Permission,
    Resource,
    group_permission,
    topic_permission,
)
from coordinator.authorization.rule import NONE
from protocol.apis import ApiKey
from protocol.asking import LENGTH_BYTES, decode_answer, encode_request
from protocol.codecs import codec_for
from protocol.errors import ErrorCode
from protocol.headers import RequestHeader
from protocol.hot.heartbeat import HeartbeatRequest
from protocol.messages import (
    DescribeGroupsRequest,
    MetadataRequest,
    MetadataResponse,
    OffsetDeleteRequest,
)
from protocol.names import GroupId, MemberId

CLIENT_ID: Final = "groupkeeper-gateway"
CORRELATION_ID: Final = -7
NOBODY: Final = MemberId("")

HEARTBEAT_VERSION: Final = 0
OFFSET_DELETE_VERSION: Final = 0
DESCRIBE_GROUPS_VERSION: Final = 0
METADATA_BY_NAME_VERSION: Final = 8
METADATA_BY_ID_VERSION: Final = 12

Decisions: TypeAlias = dict[Permission, ErrorCode]
"""NONE for each permission that the client has, else the error with which a broker refuses what needs it."""


class Answer(NamedTuple):
    """What a broker has said of permissions."""

    decisions: Decisions
    lasting: Decisions
    """As many of them as may be remembered."""


class PermissionQuery(NamedTuple):
    """A request, whole with its length, and how its answer is read."""

    frame: bytes
    read: Callable[[bytes], Answer]


def permission_queries(permissions: Iterable[Permission]) -> Iterator[PermissionQuery]:
    """The requests that find out about these permissions, each made when it is taken; one may ask about several."""
    described: list[str] = []
    names: list[str] = []
    ids: list[bytes] = []
    for permission in dict.fromkeys(permissions):
        if permission.resource is Resource.CLUSTER:
            yield _about_cluster()
        elif permission.resource is Resource.TOPIC:
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


def _frame(api_key: ApiKey, version: int, request: object) -> bytes:
    header = RequestHeader(api_key, version, CORRELATION_ID, CLIENT_ID)
    return encode_request(codec_for(api_key, version), header, request)


def _read(api_key: ApiKey, version: int, frame: bytes) -> Any:
    return decode_answer(codec_for(api_key, version), api_key, frame, LENGTH_BYTES)


def _about_group(permission: Permission) -> PermissionQuery:
    """Whether a group may be read, or deleted."""
    if permission.operation is Operation.READ:
        key, version = ApiKey.HEARTBEAT, HEARTBEAT_VERSION
        request: HeartbeatRequest | OffsetDeleteRequest = HeartbeatRequest(
            group_id=GroupId(str(permission.name)), generation_id=-1, member_id=NOBODY
        )
    else:
        key, version = ApiKey.OFFSET_DELETE, OFFSET_DELETE_VERSION
        request = OffsetDeleteRequest(version=version, group_id=str(permission.name), topics=[])

    def read(frame: bytes) -> Answer:
        return _lasting({permission: _of_group(_read(key, version, frame).error_code)})

    return PermissionQuery(_frame(key, version, request), read)


def _about_groups(names: Collection[str]) -> PermissionQuery:
    """Whether groups may be described."""
    key, version = ApiKey.DESCRIBE_GROUPS, DESCRIBE_GROUPS_VERSION

    def read(frame: bytes) -> Answer:
        decisions: Decisions = dict.fromkeys(map(_describe, names), ErrorCode.GROUP_AUTHORIZATION_FAILED)
        for group in _read(key, version, frame).groups:
            decisions[_describe(group.group_id)] = _of_group(group.error_code)
        return _lasting(decisions)

    return PermissionQuery(
        _frame(key, version, DescribeGroupsRequest(version=version, groups=list(names))), read
    )


def _about_cluster() -> PermissionQuery:
    """Whether the cluster may be described."""
    return _metadata(
        METADATA_BY_NAME_VERSION,
        [],
        lambda response: _lasting(
            {
                DESCRIBE_CLUSTER: NONE
                if Operation.DESCRIBE in (response.authorized_operations or ())
                else ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            }
        ),
        of_cluster=True,
    )


def _about_topics(names: Collection[str]) -> PermissionQuery:
    """What may be done with topics, whether they are there or not."""

    def read(response: MetadataResponse) -> Answer:
        said = {topic.name: topic for topic in response.topics}
        decisions: Decisions = {}
        for name in names:
            decisions |= _of_topic(name, said.get(name))
        return _lasting(decisions)

    topic = MetadataRequest.MetadataRequestTopic
    asked = [topic(version=METADATA_BY_NAME_VERSION, name=name) for name in names]
    return _metadata(METADATA_BY_NAME_VERSION, asked, read)


def _about_topic_ids(ids: Collection[bytes]) -> PermissionQuery:
    """What may be done with topics by their ids.

    With one that is not there nothing can be done wrong; it may be there for the next request.
    """

    def read(response: MetadataResponse) -> Answer:
        said = {}
        for topic in response.topics:
            if topic.topic_id is not None:  # as it is of what is not there, whatever the stub says
                said[topic.topic_id.bytes] = topic
        lasting: Decisions = {}
        absent: Decisions = {}
        for each in ids:
            found = said.get(each)
            if found is not None and found.error_code == ErrorCode.UNKNOWN_TOPIC_ID:
                absent |= {topic_permission(operation, each): NONE for operation in _OF_TOPICS}
            else:
                lasting |= _of_topic(each, found)
        return Answer(lasting | absent, lasting)

    topic = MetadataRequest.MetadataRequestTopic
    asked = [topic(version=METADATA_BY_ID_VERSION, topic_id=UUID(bytes=each), name=None) for each in ids]
    return _metadata(METADATA_BY_ID_VERSION, asked, read)


_OF_TOPICS: Final = (Operation.READ, Operation.DESCRIBE)


def _of_topic(name: str | bytes, topic: MetadataResponse.MetadataResponseTopic | None) -> Decisions:
    if topic is None or topic.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        operations: Collection[int] = ()
    else:
        operations = topic.authorized_operations or ()
    return {
        topic_permission(each, name): NONE if each in operations else ErrorCode.TOPIC_AUTHORIZATION_FAILED
        for each in _OF_TOPICS
    }


def _of_group(error_code: int) -> ErrorCode:
    denied = ErrorCode.GROUP_AUTHORIZATION_FAILED
    return denied if error_code == denied else NONE


def _describe(group_id: str) -> Permission:
    return group_permission(Operation.DESCRIBE, group_id)


def _lasting(decisions: Decisions) -> Answer:
    return Answer(decisions, decisions)


def _metadata(
    version: int,
    topics: list[MetadataRequest.MetadataRequestTopic],
    read: Callable[[MetadataResponse], Answer],
    *,
    of_cluster: bool = False,
) -> PermissionQuery:
    request = MetadataRequest(
        version=version,
        topics=topics,
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=of_cluster,
        include_topic_authorized_operations=True,
    )
    return PermissionQuery(
        _frame(ApiKey.METADATA, version, request),
        lambda frame: read(_read(ApiKey.METADATA, version, frame)),
    )
