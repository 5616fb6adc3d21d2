# SPDX-License-Identifier: Apache-2.0
"""Rule of OffsetFetch."""

from collections.abc import Iterable, Sequence
from operator import is_
from typing import Final, TypeVar

from coordinator.api.operations import Operation
from coordinator.gateway.questions import Right
from coordinator.gateway.rules.rule import (
    NOT_FOR_GROUP,
    NOT_FOR_TOPIC,
    PASSES,
    Judged,
    May,
    of_group,
    of_topic,
)
from protocol.hot.offset_fetch import (
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
from protocol.names import Offset
from protocol.value import replaced

T = TypeVar("T", OffsetFetchResponse, OffsetFetchResponseGroup)
Topic = TypeVar("Topic", OffsetFetchRequestTopic, OffsetFetchRequestTopics)

GROUPS_FROM: Final = 8
"""It asks for several groups."""
NO_OFFSET: Final = Offset(-1)

Fetched = OffsetFetchRequest | OffsetFetchRequestGroup
"""What is asked about one group; before v8 that is the request itself."""
Answered = OffsetFetchResponse | OffsetFetchResponseGroup
"""What is answered about one group."""


class OffsetFetch:
    """Groups that may not be described are refused, and topics; where all topics are asked for, such are left out."""

    def rights(self, request: OffsetFetchRequest, version: int) -> list[Right]:
        """The groups, and every topic that is named."""
        rights = []
        for group in _fetched(request, version):
            rights.append(of_group(Operation.DESCRIBE, group.group_id))
            rights += [of_topic(Operation.DESCRIBE, topic, version) for topic in group.topics or ()]
        return rights

    def groups(self, request: OffsetFetchRequest, version: int) -> list[str]:
        """All that are asked for."""
        return [group.group_id for group in _fetched(request, version)]

    def judge(
        self, request: OffsetFetchRequest, version: int, may: May
    ) -> Judged[OffsetFetchRequest, OffsetFetchResponse]:
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


def _fetched(request: OffsetFetchRequest, version: int) -> Sequence[Fetched]:
    """The groups that are asked for, each with its topics."""
    return request.groups if version >= GROUPS_FROM else [request]


def _without(group: Fetched, version: int, may: May) -> Fetched:
    """What is left of the question about a group."""
    if group.topics is None:
        return group
    left = [topic for topic in group.topics if may(of_topic(Operation.DESCRIBE, topic, version))]
    return group if len(left) == len(group.topics) else replaced(group, topics=left)


def _with_refused(
    response: OffsetFetchResponse, request: OffsetFetchRequest, version: int, may: May
) -> OffsetFetchResponse:
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
            said = replaced(said, topics=[*said.topics, *_refused_topics_of(group, version, may)])
        groups.append(said)
    return replaced(response, groups=groups)


def _refused_topics(request: OffsetFetchRequest, version: int, may: May) -> list[OffsetFetchResponseTopic]:
    """What is answered about the topics of the one group before v8."""
    return [
        OffsetFetchResponseTopic(
            name=topic.name,
            partitions=[
                OffsetFetchResponsePartition(index, NO_OFFSET, -1, "", NOT_FOR_TOPIC)
                for index in topic.partition_indexes
            ],
        )
        for topic in _unseen(request.topics, version, may)
    ]


def _refused_topics_of(
    group: OffsetFetchRequestGroup, version: int, may: May
) -> list[OffsetFetchResponseTopics]:
    return [
        OffsetFetchResponseTopics(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=[
                OffsetFetchResponsePartitions(index, NO_OFFSET, -1, "", NOT_FOR_TOPIC)
                for index in topic.partition_indexes
            ],
        )
        for topic in _unseen(group.topics, version, may)
    ]


def _unseen(topics: Sequence[Topic] | None, version: int, may: May) -> list[Topic]:
    """Those that may not be described."""
    return [topic for topic in topics or () if not may(of_topic(Operation.DESCRIBE, topic, version))]


def _answered(response: OffsetFetchResponse, version: int) -> Iterable[Answered]:
    return response.groups if version >= GROUPS_FROM else [response]


def _seen(response: OffsetFetchResponse, version: int) -> list[Right]:
    return [
        of_topic(Operation.DESCRIBE, topic, version)
        for group in _answered(response, version)
        for topic in group.topics
    ]


def _kept(response: OffsetFetchResponse, version: int, may: May) -> OffsetFetchResponse:
    """Only topics that may be described."""

    def keep(group: T) -> T:
        return replaced(
            group,
            topics=[topic for topic in group.topics if may(of_topic(Operation.DESCRIBE, topic, version))],
        )

    if version < GROUPS_FROM:
        return keep(response)
    return replaced(response, groups=[keep(group) for group in response.groups])
