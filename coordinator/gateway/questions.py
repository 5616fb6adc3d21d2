# SPDX-License-Identifier: Apache-2.0
"""What a client may do, asked of the broker that it is connected to, as itself.

Any broker can be asked, whether it coordinates the group or not: rights are looked at before anything else. A Heartbeat
of nobody and an OffsetDelete of nothing change nothing, and say whether the group may be read and deleted; of topics,
and of the cluster, the broker says itself what is allowed (KIP-430).
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, Final, NamedTuple
from uuid import UUID

from coordinator.api.operations import Operation, Resource
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

CLUSTER: Final = "kafka-cluster"


class Right(NamedTuple):
    """Something that may be done, or not: with a group, the cluster, or a topic by its name or (16 bytes) its id."""

    resource: Resource
    operation: Operation
    name: str | bytes


class Answer(NamedTuple):
    """What a broker has said: for each right whether the client has it."""

    allowed: dict[Right, bool]
    lasting: dict[Right, bool]
    """As much of it as may be remembered."""


class Question(NamedTuple):
    """A request, whole with its length, and how its answer is read."""

    frame: bytes
    read: Callable[[bytes], Answer]


DESCRIBE_CLUSTER: Final = Right(Resource.CLUSTER, Operation.DESCRIBE, CLUSTER)


def questions(rights: Iterable[Right]) -> Iterator[Question]:
    """The requests that find out about these rights, of which several may be in one; each is made when it is taken."""
    described: list[str] = []
    names: list[str] = []
    ids: list[bytes] = []
    for right in dict.fromkeys(rights):
        if right.resource is Resource.CLUSTER:
            yield _about_cluster()
        elif right.resource is Resource.TOPIC:
            if isinstance(right.name, bytes):
                ids.append(right.name)
            else:
                names.append(right.name)
        elif right.operation is Operation.DESCRIBE:
            described.append(str(right.name))
        else:
            yield _about_group(right)
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


def _about_group(right: Right) -> Question:
    """Whether a group may be read, or deleted."""
    if right.operation is Operation.READ:
        key, version = ApiKey.HEARTBEAT, HEARTBEAT_VERSION
        request: HeartbeatRequest | OffsetDeleteRequest = HeartbeatRequest(
            group_id=GroupId(str(right.name)), generation_id=-1, member_id=NOBODY
        )
    else:
        key, version = ApiKey.OFFSET_DELETE, OFFSET_DELETE_VERSION
        request = OffsetDeleteRequest(version=version, group_id=str(right.name), topics=[])

    def read(frame: bytes) -> Answer:
        return _lasting(
            {right: _read(key, version, frame).error_code != ErrorCode.GROUP_AUTHORIZATION_FAILED}
        )

    return Question(_frame(key, version, request), read)


def _about_groups(names: Collection[str]) -> Question:
    """Whether groups may be described."""
    key, version = ApiKey.DESCRIBE_GROUPS, DESCRIBE_GROUPS_VERSION

    def read(frame: bytes) -> Answer:
        allowed = dict.fromkeys((Right(Resource.GROUP, Operation.DESCRIBE, name) for name in names), False)
        for group in _read(key, version, frame).groups:
            if group.error_code != ErrorCode.GROUP_AUTHORIZATION_FAILED:
                allowed[Right(Resource.GROUP, Operation.DESCRIBE, group.group_id)] = True
        return _lasting(allowed)

    return Question(_frame(key, version, DescribeGroupsRequest(version=version, groups=list(names))), read)


def _about_cluster() -> Question:
    """Whether the cluster may be described."""
    return _metadata(
        METADATA_BY_NAME_VERSION,
        [],
        lambda response: _lasting(
            {DESCRIBE_CLUSTER: Operation.DESCRIBE in (response.authorized_operations or ())}
        ),
        of_cluster=True,
    )


def _about_topics(names: Collection[str]) -> Question:
    """What may be done with topics, whether they are there or not."""

    def read(response: MetadataResponse) -> Answer:
        said = {topic.name: topic for topic in response.topics}
        allowed: dict[Right, bool] = {}
        for name in names:
            allowed |= _allowed(name, said.get(name))
        return _lasting(allowed)

    topic = MetadataRequest.MetadataRequestTopic
    asked = [topic(version=METADATA_BY_NAME_VERSION, name=name) for name in names]
    return _metadata(METADATA_BY_NAME_VERSION, asked, read)


def _about_topic_ids(ids: Collection[bytes]) -> Question:
    """What may be done with topics by their ids.

    With one that is not there nothing can be done wrong; it may be there for the next request.
    """

    def read(response: MetadataResponse) -> Answer:
        said = {}
        for topic in response.topics:
            if topic.topic_id is not None:  # as it is of what is not there, whatever the stub says
                said[topic.topic_id.bytes] = topic
        lasting: dict[Right, bool] = {}
        absent: dict[Right, bool] = {}
        for each in ids:
            found = said.get(each)
            if found is not None and found.error_code == ErrorCode.UNKNOWN_TOPIC_ID:
                absent |= {Right(Resource.TOPIC, operation, each): True for operation in _OF_TOPICS}
            else:
                lasting |= _allowed(each, found)
        return Answer(lasting | absent, lasting)

    topic = MetadataRequest.MetadataRequestTopic
    asked = [topic(version=METADATA_BY_ID_VERSION, topic_id=UUID(bytes=each), name=None) for each in ids]
    return _metadata(METADATA_BY_ID_VERSION, asked, read)


_OF_TOPICS: Final = (Operation.READ, Operation.DESCRIBE)


def _allowed(name: str | bytes, topic: MetadataResponse.MetadataResponseTopic | None) -> dict[Right, bool]:
    if topic is None or topic.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        operations: Collection[int] = ()
    else:
        operations = topic.authorized_operations or ()
    return {Right(Resource.TOPIC, each, name): each in operations for each in _OF_TOPICS}


def _lasting(allowed: dict[Right, bool]) -> Answer:
    return Answer(allowed, allowed)


def _metadata(
    version: int,
    topics: list[MetadataRequest.MetadataRequestTopic],
    read: Callable[[MetadataResponse], Answer],
    *,
    of_cluster: bool = False,
) -> Question:
    request = MetadataRequest(
        version=version,
        topics=topics,
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=of_cluster,
        include_topic_authorized_operations=True,
    )
    return Question(
        _frame(ApiKey.METADATA, version, request),
        lambda frame: read(_read(ApiKey.METADATA, version, frame)),
    )
