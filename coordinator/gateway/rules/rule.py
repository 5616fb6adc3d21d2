# SPDX-License-Identifier: Apache-2.0
"""Which rights the requests of groups need, and what becomes of a request that has some of them only.

As in KafkaApis of Kafka 4.3: what is refused of a request is taken out before the coordinator sees it, and put back
into its answer in the places where a broker has it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import is_
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol

from coordinator.api.operations import Operation, Resource
from coordinator.gateway.questions import DESCRIBE_CLUSTER, NOBODY, Right
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.hot.join_group import JoinGroupResponse
from protocol.hot.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from protocol.hot.offset_fetch import (
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from protocol.messages import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribeGroupsRequest,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
)
from protocol.names import Offset
from protocol.value import replaced

May = Callable[[Right], bool]
"""Whether the client has a right that was asked about."""

GROUPS_FROM: Final = 8
"""OffsetFetch asks for several groups."""
TOPIC_IDS_FROM: Final = 10
"""OffsetCommit and OffsetFetch name topics by their ids."""
SEVERAL_KEYS_FROM: Final = 4
"""FindCoordinator asks for several groups."""
OPERATIONS_FROM: Final = 3
"""DescribeGroups can ask what may be done."""

NOT_FOR_GROUP: Final = ErrorCode.GROUP_AUTHORIZATION_FAILED
NO_OFFSET: Final = Offset(-1)
NOT_FOR_TOPIC: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED


class Judged(NamedTuple):
    """What becomes of a request. Nothing of it set: it passes as it is."""

    error: ErrorCode | None = None
    """All of it is refused with this."""
    answer: Any = None
    """It is answered with this response; nothing of it is left for a coordinator."""
    request: Any = None
    """What is left of it for the coordinator."""
    merge: Callable[[Any], Any] | None = None
    """(the coordinator's response) -> the client's"""
    names: Callable[[Any], list[Right]] | None = None
    """(the coordinator's response) -> the rights without which something in it is not to be seen."""
    keep: Callable[[Any, May], Any] | None = None
    """(the coordinator's response, ...) -> what the client is to see of it."""


PASSES: Final = Judged()


class Rule(Protocol):
    """One api's."""

    def rights(self, request: Any, version: int) -> list[Right]:
        """What has to be known before it is judged."""

    def judge(self, request: Any, version: int, may: May) -> Judged:
        """What becomes of the request."""

    def groups(self, request: Any, version: int) -> list[str]:
        """Of which groups a coordinator is asked."""


def of_group(operation: Operation, name: str) -> Right:
    """The right to do this with a group."""
    return Right(Resource.GROUP, operation, name)


def _topic(operation: Operation, topic: Any, version: int) -> Right:
    name: str | bytes = topic.topic_id if version >= TOPIC_IDS_FROM else topic.name
    return Right(Resource.TOPIC, operation, name)


class OneGroup:
    """Membership: the group has to be readable."""

    def rights(self, request: Any, version: int) -> list[Right]:
        """The group."""
        return [of_group(Operation.READ, request.group_id)]

    def judge(self, request: Any, version: int, may: May) -> Judged:
        """All or nothing."""
        return PASSES if may(self.rights(request, version)[0]) else Judged(NOT_FOR_GROUP)

    def groups(self, request: Any, version: int) -> list[str]:
        """This one."""
        return [request.group_id]


class JoinGroup(OneGroup):
    """As the others, but that the refusal names no member."""

    def judge(self, request: Any, version: int, may: May) -> Judged:
        """All or nothing."""
        if may(self.rights(request, version)[0]):
            return PASSES
        return Judged(
            answer=JoinGroupResponse(error_code=NOT_FOR_GROUP, member_id=NOBODY, protocol_name=None)
        )


class OffsetCommit(OneGroup):
    """Topics that may not be read are refused, the others go to the coordinator."""

    def rights(self, request: Any, version: int) -> list[Right]:
        """The group, and every topic."""
        topics = [_topic(Operation.READ, topic, version) for topic in request.topics]
        return [of_group(Operation.READ, request.group_id), *topics]

    def judge(self, request: Any, version: int, may: May) -> Judged:
        """The group for all, then each topic for itself."""
        if not may(of_group(Operation.READ, request.group_id)):
            return Judged(NOT_FOR_GROUP)
        refused = [topic for topic in request.topics if not may(_topic(Operation.READ, topic, version))]
        if not refused:
            return PASSES
        answered = [
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(each.partition_index, NOT_FOR_TOPIC)
                    for each in topic.partitions
                ],
            )
            for topic in refused
        ]
        left = [topic for topic in request.topics if may(_topic(Operation.READ, topic, version))]
        if not left:
            return Judged(answer=OffsetCommitResponse(topics=answered))
        return Judged(
            request=replaced(request, topics=left),
            merge=lambda response: replaced(response, topics=[*answered, *response.topics]),
        )


class OffsetDelete:
    """The group has to be deletable, topics readable."""

    def rights(self, request: Any, version: int) -> list[Right]:
        """The group, and every topic."""
        topics = [Right(Resource.TOPIC, Operation.READ, topic.name) for topic in request.topics]
        return [of_group(Operation.DELETE, request.group_id), *topics]

    def judge(self, request: Any, version: int, may: May) -> Judged:
        """The group for all, then each topic for itself."""
        if not may(of_group(Operation.DELETE, request.group_id)):
            return Judged(NOT_FOR_GROUP)

        def may_read(topic: Any) -> bool:
            return may(Right(Resource.TOPIC, Operation.READ, topic.name))

        make = OffsetDeleteResponse.OffsetDeleteResponseTopic
        answered = [
            make(
                name=topic.name,
                partitions=[
                    make.OffsetDeleteResponsePartition(
                        partition_index=each.partition_index, error_code=int(NOT_FOR_TOPIC)
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
            if not may_read(topic)
        ]
        if not answered:
            return PASSES

        def merge(response: Any) -> Any:
            if response.error_code:  # of the group: nothing else is said then
                return response
            return OffsetDeleteResponse(
                error_code=0, throttle_time_ms=0, topics=[*answered, *response.topics]
            )

        left = [topic for topic in request.topics if may_read(topic)]
        return Judged(request=OffsetDeleteRequest(group_id=request.group_id, topics=left), merge=merge)

    def groups(self, request: Any, version: int) -> list[str]:
        """This one."""
        return [request.group_id]


class OffsetFetch:
    """Groups that may not be described are refused, and topics; where all topics are asked for, such are left out."""

    def rights(self, request: Any, version: int) -> list[Right]:
        """The groups, and every topic that is named."""
        rights = []
        for group in _fetched(request, version):
            rights.append(of_group(Operation.DESCRIBE, group.group_id))
            rights += [_topic(Operation.DESCRIBE, topic, version) for topic in group.topics or ()]
        return rights

    def groups(self, request: Any, version: int) -> list[str]:
        """All that are asked for."""
        return [group.group_id for group in _fetched(request, version)]

    def judge(self, request: Any, version: int, may: May) -> Judged:
        """Each group for itself; before v8 there is one."""
        asked = _fetched(request, version)
        if version < GROUPS_FROM and not may(of_group(Operation.DESCRIBE, request.group_id)):
            return Judged(NOT_FOR_GROUP)
        left = [
            _without(group, version, may)
            for group in asked
            if may(of_group(Operation.DESCRIBE, group.group_id))
        ]
        if not left:
            return Judged(NOT_FOR_GROUP)
        sees_all = any(group.topics is None for group in left)
        is_whole = len(left) == len(asked) and all(map(is_, left, asked))
        if is_whole and not sees_all:
            return PASSES
        changed = (
            replaced(request, groups=left)
            if version >= GROUPS_FROM
            else replaced(request, topics=left[0].topics)
        )
        return Judged(
            request=None if is_whole else changed,
            merge=lambda response: _with_refused(response, request, version, may),
            names=(lambda response: _seen(response, version)) if sees_all else None,
            keep=(lambda response, may_see: _kept(response, version, may_see)) if sees_all else None,
        )


def _fetched(request: Any, version: int) -> Sequence[Any]:
    """The groups that are asked for, each with its topics."""
    return request.groups if version >= GROUPS_FROM else [request]


def _without(group: Any, version: int, may: May) -> Any:
    """What is left of the question about a group."""
    if group.topics is None:
        return group
    left = [topic for topic in group.topics if may(_topic(Operation.DESCRIBE, topic, version))]
    return group if len(left) == len(group.topics) else replaced(group, topics=left)


def _with_refused(response: Any, request: Any, version: int, may: May) -> Any:
    """The answer with all that was refused, in the order of the question."""
    if version < GROUPS_FROM:
        if response.error_code:
            return response
        return replaced(response, topics=[*response.topics, *_refused_topics(request, version, may)])
    answered = iter(response.groups)
    groups = []
    for group in request.groups:
        if not may(of_group(Operation.DESCRIBE, group.group_id)):
            groups.append(OffsetFetchResponseGroup(group_id=group.group_id, error_code=NOT_FOR_GROUP))
            continue
        said = next(answered)
        if not said.error_code:
            said = replaced(said, topics=[*said.topics, *_refused_topics(group, version, may)])
        groups.append(said)
    return replaced(response, groups=groups)


def _refused_topics(group: Any, version: int, may: May) -> list[Any]:
    refused = [topic for topic in group.topics or () if not may(_topic(Operation.DESCRIBE, topic, version))]
    if version < GROUPS_FROM:
        return [
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(index, NO_OFFSET, -1, "", NOT_FOR_TOPIC)
                    for index in topic.partition_indexes
                ],
            )
            for topic in refused
        ]
    return [
        OffsetFetchResponseTopics(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=[
                OffsetFetchResponsePartitions(index, NO_OFFSET, -1, "", NOT_FOR_TOPIC)
                for index in topic.partition_indexes
            ],
        )
        for topic in refused
    ]


def _answered(response: Any, version: int) -> Iterable[Any]:
    return response.groups if version >= GROUPS_FROM else [response]


def _seen(response: Any, version: int) -> list[Right]:
    return [
        _topic(Operation.DESCRIBE, topic, version)
        for group in _answered(response, version)
        for topic in group.topics
    ]


def _kept(response: Any, version: int, may: May) -> Any:
    """Only topics that may be described."""

    def keep(group: Any) -> Any:
        return replaced(
            group, topics=[topic for topic in group.topics if may(_topic(Operation.DESCRIBE, topic, version))]
        )

    if version < GROUPS_FROM:
        return keep(response)
    return replaced(response, groups=[keep(group) for group in response.groups])


class DescribeGroups:
    """Groups that may not be described are refused, before the others."""

    def rights(self, request: Any, version: int) -> list[Right]:
        """Every group; where it is asked what may be done with it, all that can be found out."""
        asked = [Operation.DESCRIBE]
        if version >= OPERATIONS_FROM and request.include_authorized_operations:
            asked += [Operation.READ, Operation.DELETE]
        return [of_group(operation, group) for group in request.groups for operation in asked]

    def groups(self, request: Any, version: int) -> list[str]:
        """All that are asked for."""
        return list(request.groups)

    def judge(self, request: Any, version: int, may: May) -> Judged:
        """Each group for itself."""
        left = [group for group in request.groups if may(of_group(Operation.DESCRIBE, group))]
        if not left and request.groups:
            return Judged(NOT_FOR_GROUP)
        with_operations = version >= OPERATIONS_FROM and request.include_authorized_operations
        if len(left) == len(request.groups) and not with_operations:
            return PASSES

        def merge(response: Any) -> Any:
            if with_operations:
                _say_operations(response.groups, may)
            refused = (group for group in request.groups if not may(of_group(Operation.DESCRIBE, group)))
            response.groups = [*(_refused_group(group, version) for group in refused), *response.groups]
            return response

        changed = DescribeGroupsRequest(
            version=version, groups=left, include_authorized_operations=with_operations
        )
        return Judged(request=changed, merge=merge)


def _say_operations(groups: list[Any], may: May) -> None:
    for group in groups:
        if not group.error_code:
            asked = (Operation.READ, Operation.DELETE, Operation.DESCRIBE)
            group.authorized_operations = {
                int(operation) for operation in asked if may(of_group(operation, group.group_id))
            }


def _refused_group(group: str, version: int) -> Any:
    from coordinator.api.describe_groups import error_response

    asked = DescribeGroupsRequest(version=version, groups=[group])
    return error_response(asked, NOT_FOR_GROUP, version).groups[0]


class DeleteGroups:
    """Groups that may not be deleted are refused, after the others."""

    def rights(self, request: Any, version: int) -> list[Right]:
        """Every group."""
        return [of_group(Operation.DELETE, group) for group in request.groups_names]

    def groups(self, request: Any, version: int) -> list[str]:
        """All that are asked for."""
        return list(request.groups_names)

    def judge(self, request: Any, version: int, may: May) -> Judged:
        """Each group for itself."""
        groups = list(dict.fromkeys(request.groups_names))
        refused = [group for group in groups if not may(of_group(Operation.DELETE, group))]
        if not refused:
            return PASSES
        make = DeleteGroupsResponse.DeletableGroupResult
        results = [make(version=version, group_id=group, error_code=int(NOT_FOR_GROUP)) for group in refused]
        left = [group for group in groups if may(of_group(Operation.DELETE, group))]
        if not left:
            return Judged(answer=DeleteGroupsResponse(version=version, throttle_time_ms=0, results=results))

        def merge(response: Any) -> Any:
            response.results = [*response.results, *results]
            return response

        return Judged(request=DeleteGroupsRequest(version=version, groups_names=left), merge=merge)


class FindCoordinator:
    """Groups that may not be described are not found."""

    def rights(self, request: Any, version: int) -> list[Right]:
        """Every group."""
        return [of_group(Operation.DESCRIBE, group) for group in self._keys(request, version)]

    def groups(self, request: Any, version: int) -> list[str]:
        """None: where a group is says nothing of it."""
        return []

    def judge(self, request: Any, version: int, may: May) -> Judged:
        """Each group for itself; before v4 there is one."""
        keys = self._keys(request, version)
        left = [key for key in keys if may(of_group(Operation.DESCRIBE, key))]
        if len(left) == len(keys):
            return PASSES
        if version < SEVERAL_KEYS_FROM:
            return Judged(answer=_not_allowed(version))
        if not left:
            return Judged(NOT_FOR_GROUP)

        def merge(response: Any) -> Any:
            found = iter(response.coordinators)
            response.coordinators = [
                next(found) if may(of_group(Operation.DESCRIBE, key)) else _not_found(key, version)
                for key in keys
            ]
            return response

        changed = FindCoordinatorRequest(version=version, key_type=request.key_type, coordinator_keys=left)
        return Judged(request=changed, merge=merge)

    @staticmethod
    def _keys(request: Any, version: int) -> list[str]:
        return request.coordinator_keys if version >= SEVERAL_KEYS_FROM else [request.key]


def _not_allowed(version: int) -> Any:
    return FindCoordinatorResponse(
        version=version,
        error_code=int(NOT_FOR_GROUP),
        error_message="Group authorization failed.",
        node_id=-1,
        host="",
        port=-1,
    )


def _not_found(key: str, version: int) -> Any:
    from coordinator.api.find_coordinator import error_response

    asked = FindCoordinatorRequest(version=version, key_type=0, coordinator_keys=[key])
    return error_response(asked, NOT_FOR_GROUP, version).coordinators[0]


class ListGroups:
    """Who may describe the cluster sees all groups, others those that they may describe."""

    def rights(self, request: Any, version: int) -> list[Right]:
        """The cluster; of which groups there is a question is known with the answer."""
        return [DESCRIBE_CLUSTER]

    def groups(self, request: Any, version: int) -> list[str]:
        """None."""
        return []

    def judge(self, request: Any, version: int, may: May) -> Judged:
        """All, or what may be seen."""
        if may(DESCRIBE_CLUSTER):
            return PASSES

        def keep(response: Any, may_see: May) -> Any:
            response.groups = [
                group for group in response.groups if may_see(of_group(Operation.DESCRIBE, group.group_id))
            ]
            return response

        return Judged(
            names=lambda response: [
                of_group(Operation.DESCRIBE, group.group_id) for group in response.groups
            ],
            keep=keep,
        )


RULES: Final[Mapping[int, Rule]] = MappingProxyType(
    {
        ApiKey.JOIN_GROUP: JoinGroup(),
        ApiKey.SYNC_GROUP: OneGroup(),
        ApiKey.HEARTBEAT: OneGroup(),
        ApiKey.LEAVE_GROUP: OneGroup(),
        ApiKey.OFFSET_COMMIT: OffsetCommit(),
        ApiKey.OFFSET_FETCH: OffsetFetch(),
        ApiKey.OFFSET_DELETE: OffsetDelete(),
        ApiKey.DESCRIBE_GROUPS: DescribeGroups(),
        ApiKey.DELETE_GROUPS: DeleteGroups(),
        ApiKey.FIND_COORDINATOR: FindCoordinator(),
        ApiKey.LIST_GROUPS: ListGroups(),
    }
)
"""By api; as in KafkaApis."""
