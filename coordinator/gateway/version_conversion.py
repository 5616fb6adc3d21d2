# SPDX-License-Identifier: Apache-2.0
"""Converts requests and responses between the version of a client and an older one, the newest that a broker has."""

from collections.abc import Mapping
from typing import Final

from coordinator.api.describe_groups import not_found_message
from coordinator.api.offset_fetch import make_unknown_id_result
from protocol.compiled_struct import copy_with_fields
from protocol.errors import ErrorCode
from protocol.hot.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)
from protocol.kafka_python_messages import DescribeGroupsResponse

DEAD: Final = "Dead"


def upgrade_described_groups_to_v6(response: DescribeGroupsResponse) -> DescribeGroupsResponse:
    """Return a DescribeGroups v5 response as v6, in which an unknown group is GROUP_ID_NOT_FOUND (KIP-1043)."""
    for group in response.groups:
        group.error_message = None
        if group.error_code == ErrorCode.NONE and group.group_state == DEAD:
            group.error_code = int(ErrorCode.GROUP_ID_NOT_FOUND)
            group.error_message = not_found_message(group.group_id)
    return response


def convert_ids_to_names(request: OffsetFetchRequest, ids: Mapping[str, bytes]) -> OffsetFetchRequest:
    """Return an OffsetFetch v10 request, which has ids of topics, as one of v8 or v9, which has names.

    `ids` has the ids of all topics by name. A topic with another id is left out.
    """
    names = {topic_id: name for name, topic_id in ids.items()}

    def named(group: OffsetFetchRequestGroup) -> OffsetFetchRequestGroup:
        if group.topics is None:
            return group
        topics = [
            copy_with_fields(topic, name=names[topic.topic_id])
            for topic in group.topics
            if topic.topic_id in names
        ]
        return copy_with_fields(group, topics=topics)

    return copy_with_fields(request, groups=[named(group) for group in request.groups])


def convert_names_to_ids(
    request: OffsetFetchRequest, response: OffsetFetchResponse, ids: Mapping[str, bytes]
) -> OffsetFetchResponse:
    """Return a v8 or v9 response to `convert_ids_to_names(request, ids)` as the v10 response to `request`.

    A topic whose id is unknown comes last, with UNKNOWN_TOPIC_ID in each partition; if all topics are asked for, a
    topic without an id is left out.
    """
    known = set(ids.values())
    unknown = {
        group.group_id: [
            make_unknown_id_result(topic) for topic in group.topics or () if topic.topic_id not in known
        ]
        for group in request.groups
    }

    def named(group: OffsetFetchResponseGroup) -> OffsetFetchResponseGroup:
        topics = [
            copy_with_fields(topic, name="", topic_id=ids[topic.name])
            for topic in group.topics
            if topic.name in ids
        ]
        rest = [] if group.error_code else unknown.get(group.group_id, [])
        return copy_with_fields(group, topics=[*topics, *rest])

    return copy_with_fields(response, groups=[named(group) for group in response.groups])
