# SPDX-License-Identifier: Apache-2.0
"""The rule of OffsetFetch, by groups and by topics."""

from collections.abc import Sequence
from operator import is_
from typing import Any

from coordinator.authorization.group_request_topics import TopicsRulePart
from coordinator.authorization.permissions import Operation, Permission, group_permission
from coordinator.authorization.rule import (
    NONE,
    PASSES,
    AuthorizationResult,
    Decide,
    Refuse,
    Rule,
    copy_message_with,
)
from protocol.compiled_struct import copy_with_fields
from protocol.errors import ErrorCode
from protocol.hot.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from protocol.newtypes import Offset

GROUPS_FROM = 8
"""The version from which on OffsetFetch asks for several groups."""
NO_OFFSET = Offset(-1)

Fetched = OffsetFetchRequest | OffsetFetchRequestGroup
"""The part of a request about one group; before v8 that is the request itself."""


class OffsetFetchRule(Rule):
    """Refuses groups and topics that may not be described; if all topics are asked for, such topics are left out."""

    def __init__(self, ids_from: int) -> None:
        """Use the ids of topics instead of their names from version `ids_from` on."""
        self._topics = TopicsRulePart(
            Operation.DESCRIBE, _refused_topic, refuses_all_unknown=True, ids_from=ids_from
        )

    def find_permissions_to_look_up(self, request: OffsetFetchRequest, version: int) -> list[Permission]:
        """Return the permissions for the groups, and for every topic that is named."""
        needed = []
        for group in _fetched(request, version):
            needed.append(_describe(group))
            needed += self._topics.find_permissions_to_look_up(group.topics, version)
        return needed

    def routing_group_ids(self, request: OffsetFetchRequest, version: int) -> list[str]:
        """Return all groups that are asked for."""
        return [group.group_id for group in _fetched(request, version)]

    def restrict(
        self, request: OffsetFetchRequest, version: int, decide: Decide, refuse: Refuse
    ) -> AuthorizationResult:
        """Decide on each group on its own; before v8 there is one."""
        asked = _fetched(request, version)
        errors = [self._error(group, version, decide) for group in asked]
        if version < GROUPS_FROM and errors[0] is not NONE:
            return AuthorizationResult(errors[0])
        left = [
            self._without_refused(group, version, decide)
            for group, error in zip(asked, errors, strict=True)
            if error is NONE
        ]
        if asked and not left:
            refused = map(_refused_group, asked, errors)
            return AuthorizationResult(response=OffsetFetchResponse(groups=list(refused)))
        sees_all = any(group.topics is None for group in left)
        is_whole = len(left) == len(asked) and all(map(is_, left, asked))
        if is_whole and not sees_all:
            return PASSES
        fields = {"groups": left} if version >= GROUPS_FROM else {"topics": left[0].topics}
        return AuthorizationResult(
            request=None if is_whole else copy_with_fields(request, **fields),
            merge=lambda response: self._with_refused(response, request, version, decide),
            needed=(lambda response: self._seen(response, version)) if sees_all else None,
            visible=(lambda response, decide: self._visible(response, version, decide)) if sees_all else None,
        )

    def _error(self, group: Fetched, version: int, decide: Decide) -> ErrorCode:
        """Return the error that refuses a whole group, or NONE."""
        return decide(_describe(group)) or self._topics.find_failed_decision_error(
            group.topics, version, decide
        )

    def _without_refused(self, group: Fetched, version: int, decide: Decide) -> Fetched:
        """Return the request for a group without its refused topics."""
        if group.topics is None:
            return group
        left = self._topics.select_permitted_topics(group.topics, version, decide)
        return group if len(left) == len(group.topics) else copy_with_fields(group, topics=left)

    def _with_refused(
        self, response: OffsetFetchResponse, request: OffsetFetchRequest, version: int, decide: Decide
    ) -> OffsetFetchResponse:
        """Return the response with all refused groups and topics, the groups in the order of the request."""
        if version < GROUPS_FROM:
            if response.error_code:
                return response
            refused = self._topics.make_refused_topics(request.topics, version, decide)
            return copy_with_fields(response, topics=[*response.topics, *refused])
        answered = iter(response.groups)
        groups = []
        for group in request.groups:
            error = self._error(group, version, decide)
            if error is not NONE:
                groups.append(_refused_group(group, error))
                continue
            row = next(answered)
            if not row.error_code:
                refused = self._topics.make_refused_topics(group.topics, version, decide)
                row = copy_with_fields(row, topics=[*row.topics, *refused])
            groups.append(row)
        return copy_with_fields(response, groups=groups)

    def _seen(self, response: OffsetFetchResponse, version: int) -> list[Permission]:
        groups: Sequence[Any] = response.groups if version >= GROUPS_FROM else [response]
        return [
            each
            for group in groups
            for each in self._topics.find_permissions_to_look_up(group.topics, version)
        ]

    def _visible(self, response: OffsetFetchResponse, version: int, decide: Decide) -> OffsetFetchResponse:
        """Keep only topics that may be described; a group with a topic on which there is no decision gets an error."""

        def visible(group: Any) -> Any:
            error = self._topics.find_failed_decision_error(group.topics, version, decide)
            if error is not NONE:
                return copy_message_with(group, topics=[], error_code=error)
            return copy_message_with(
                group, topics=self._topics.select_permitted_topics(group.topics, version, decide)
            )

        if version < GROUPS_FROM:
            seen: OffsetFetchResponse = visible(response)
            return seen
        return copy_with_fields(response, groups=[visible(group) for group in response.groups])


def _fetched(request: OffsetFetchRequest, version: int) -> Sequence[Fetched]:
    """Return the groups that are asked for, each with its topics."""
    return request.groups if version >= GROUPS_FROM else [request]


def _describe(group: Fetched) -> Permission:
    return group_permission(Operation.DESCRIBE, group.group_id)


def _refused_group(group: Fetched, error: ErrorCode) -> OffsetFetchResponseGroup:
    return OffsetFetchResponseGroup(group_id=group.group_id, error_code=error)


def _refused_topic(topic: Any, error: ErrorCode, version: int) -> Any:
    if version < GROUPS_FROM:
        rows = [
            OffsetFetchResponsePartition(index, NO_OFFSET, -1, "", error) for index in topic.partition_indexes
        ]
        return OffsetFetchResponseTopic(name=topic.name, partitions=rows)
    return OffsetFetchResponseTopics(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetFetchResponsePartitions(index, NO_OFFSET, -1, "", error)
            for index in topic.partition_indexes
        ],
    )
