# SPDX-License-Identifier: Apache-2.0
"""What is left of a request that is refused in part, and what its client hears: each refusal has its own error."""

from collections.abc import Mapping
from typing import Any

import pytest

from coordinator.api import (
    delete_groups,
    describe_groups,
    find_coordinator,
    heartbeat,
    join_group,
    list_groups,
    offset_commit,
    offset_delete,
    offset_fetch,
    sync_group,
)
from coordinator.authorization.permissions import (
    DESCRIBE_CLUSTER,
    Operation,
    Permission,
    group_permission,
    topic_permission,
)
from coordinator.authorization.rule import PASSES, AuthorizationResult
from coordinator.authorization.rules_by_api import RULES
from protocol.errors import ErrorCode
from protocol.hot.heartbeat import HeartbeatRequest
from protocol.hot.join_group import JoinGroupRequest
from protocol.hot.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from protocol.hot.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from protocol.hot.sync_group import SyncGroupRequest
from protocol.kafka_python_messages import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    FindCoordinatorRequest,
    ListGroupsRequest,
    ListGroupsResponse,
    OffsetDeleteRequest,
)
from protocol.newtypes import GroupId, MemberId, Offset

NONE = ErrorCode.NONE
NO_GROUP = ErrorCode.GROUP_AUTHORIZATION_FAILED
NO_TOPIC = ErrorCode.TOPIC_AUTHORIZATION_FAILED
BROKEN = ErrorCode.UNKNOWN_SERVER_ERROR
"""What a broker says whose authorizer has thrown."""

Errors = Mapping[Permission, ErrorCode]


def restricted(api: Any, version: int, request: Any, refused: Errors) -> Any:
    """What the rule makes of a request; it asks for no permission that it has not named."""
    rule = RULES[api.key]
    decisions = {each: refused.get(each, NONE) for each in rule.find_permissions_to_look_up(request, version)}
    return rule.restrict(request, version, decisions.__getitem__, api.error_response)


def group(operation: Operation, name: str, error: ErrorCode = NO_GROUP) -> Errors:
    """A group with which this may not be done."""
    return {group_permission(operation, name): error}


def topic(operation: Operation, name: str | bytes, error: ErrorCode = NO_TOPIC) -> Errors:
    """A topic with which this may not be done."""
    return {topic_permission(operation, name): error}


def errors_of(topics: list[Any]) -> list[tuple[str | bytes, list[ErrorCode]]]:
    """Each topic of a response by name or id, with the errors of its partitions."""
    return [
        (each.name or each.topic_id, [ErrorCode(row.error_code) for row in each.partitions])
        for each in topics
    ]


@pytest.mark.parametrize("error", [NO_GROUP, BROKEN])
def test_a_request_about_one_group_is_refused_as_a_whole(error: ErrorCode) -> None:
    request = HeartbeatRequest(group_id=GroupId("g"))
    assert restricted(heartbeat.API, 4, request, {}) is PASSES
    assert restricted(heartbeat.API, 4, request, group(Operation.READ, "g", error)) == AuthorizationResult(
        error
    )
    assert restricted(heartbeat.API, 4, request, group(Operation.READ, "another", error)) is PASSES


def test_the_refusal_of_a_join_names_no_member() -> None:
    join = JoinGroupRequest(group_id=GroupId("g"), member_id=MemberId("m"))
    response = restricted(join_group.API, 9, join, group(Operation.READ, "g", BROKEN)).response
    assert (response.error_code, response.member_id) == (BROKEN, "")


def commit(*topics: str | bytes) -> OffsetCommitRequest:
    """A commit to partitions 0 and 1 of each topic."""
    rows = [OffsetCommitRequestPartition(index, Offset(7)) for index in (0, 1)]
    named = [
        OffsetCommitRequestTopic(topic_id=each, partitions=rows)
        if isinstance(each, bytes)
        else OffsetCommitRequestTopic(name=each, partitions=rows)
        for each in topics
    ]
    return OffsetCommitRequest(group_id=GroupId("g"), topics=named)


@pytest.mark.parametrize(
    ("version", "names"), [(8, ("a", "b", "c")), (10, (b"a" * 16, b"b" * 16, b"c" * 16))]
)
def test_topics_that_may_not_be_read_come_first_in_the_response_to_a_commit(
    version: int, names: tuple[str | bytes, ...]
) -> None:
    refused = {**topic(Operation.READ, names[0]), **topic(Operation.READ, names[2], BROKEN)}
    result = restricted(offset_commit.API, version, commit(*names), refused)
    assert [each.name or each.topic_id for each in result.request.topics] == [names[1]]
    left = result.request.topics[0]
    rows = [OffsetCommitResponsePartition(index, NONE) for index in (0, 1)]
    answered = OffsetCommitResponse(topics=[OffsetCommitResponseTopic(left.name, left.topic_id, rows)])
    assert errors_of(result.merge(answered).topics) == [
        (names[0], [NO_TOPIC, NO_TOPIC]),
        (names[2], [BROKEN, BROKEN]),
        (names[1], [NONE, NONE]),
    ]


def test_a_commit_of_which_nothing_is_left_is_answered_at_once() -> None:
    result = restricted(offset_commit.API, 8, commit("a"), topic(Operation.READ, "a", BROKEN))
    assert errors_of(result.response.topics) == [("a", [BROKEN, BROKEN])]


def deletion(*topics: str) -> OffsetDeleteRequest:
    """A deletion of the offset in partition 0 of each topic."""
    kind = OffsetDeleteRequest.OffsetDeleteRequestTopic
    rows = [kind.OffsetDeleteRequestPartition(partition_index=0)]
    return OffsetDeleteRequest(group_id="g", topics=[kind(name=each, partitions=rows) for each in topics])


def test_a_deletion_of_which_no_topic_is_left_still_hears_what_is_wrong_with_its_group() -> None:
    result = restricted(offset_delete.API, 0, deletion("a"), topic(Operation.READ, "a"))
    assert result.request.topics == []
    of_the_group = offset_delete.API.error_response(deletion(), ErrorCode.GROUP_ID_NOT_FOUND, 0)
    assert result.merge(of_the_group) is of_the_group
    well = offset_delete.API.error_response(deletion(), NONE, 0)
    assert errors_of(result.merge(well).topics) == [("a", [NO_TOPIC])]


def fetch(groups: Mapping[str, tuple[str, ...] | None]) -> OffsetFetchRequest:
    """An OffsetFetch from v8 on."""
    return OffsetFetchRequest(
        groups=[
            OffsetFetchRequestGroup(
                group_id=GroupId(name),
                topics=None
                if topics is None
                else [OffsetFetchRequestTopics(name=each, partition_indexes=[0]) for each in topics],
            )
            for name, topics in groups.items()
        ]
    )


def fetched(group_id: str, *topics: str) -> OffsetFetchResponseGroup:
    """What a coordinator says of one group."""
    rows = [OffsetFetchResponsePartitions(0, Offset(5))]
    named = [OffsetFetchResponseTopics(name=each, partitions=rows) for each in topics]
    return OffsetFetchResponseGroup(group_id=GroupId(group_id), topics=named)


def test_groups_and_topics_of_a_fetch_are_refused_each_for_itself() -> None:
    request = fetch({"a": ("t", "u"), "b": ("t",), "c": ("u",)})
    refused = {**group(Operation.DESCRIBE, "b", BROKEN), **topic(Operation.DESCRIBE, "t")}
    result = restricted(offset_fetch.API, 9, request, refused)
    assert [each.group_id for each in result.request.groups] == ["a", "c"]
    merged = result.merge(OffsetFetchResponse(groups=[fetched("a", "u"), fetched("c", "u")]))
    assert [(each.group_id, each.error_code) for each in merged.groups] == [("a", 0), ("b", BROKEN), ("c", 0)]
    assert errors_of(merged.groups[0].topics) == [("u", [NONE]), ("t", [NO_TOPIC])]
    assert errors_of(merged.groups[2].topics) == [("u", [NONE])]


def test_a_fetch_of_which_no_group_is_left_is_answered_at_once_each_group_with_its_error() -> None:
    refused = {**group(Operation.DESCRIBE, "a"), **group(Operation.DESCRIBE, "b", BROKEN)}
    result = restricted(offset_fetch.API, 8, fetch({"a": None, "b": ("t",)}), refused)
    assert [(each.group_id, each.error_code) for each in result.response.groups] == [
        ("a", NO_GROUP),
        ("b", BROKEN),
    ]
    single = OffsetFetchRequest(group_id=GroupId("a"), topics=[OffsetFetchRequestTopic("t", [0])])
    assert restricted(offset_fetch.API, 5, single, refused).error is NO_GROUP


@pytest.mark.parametrize(("version", "error"), [(4, NO_GROUP), (5, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)])
def test_a_sync_that_must_name_its_protocol_is_refused_for_that_first(version: int, error: ErrorCode) -> None:
    request = SyncGroupRequest(group_id=GroupId("g"), protocol_type="consumer")
    assert restricted(sync_group.API, version, request, group(Operation.READ, "g")).error is error
    named = SyncGroupRequest(group_id=GroupId("g"), protocol_type="consumer", protocol_name="range")
    assert restricted(sync_group.API, version, named, group(Operation.READ, "g")).error is NO_GROUP


def test_of_a_fetch_of_all_topics_those_are_left_out_that_may_not_be_described() -> None:
    result = restricted(offset_fetch.API, 8, fetch({"a": None}), {})
    assert result.request is None
    response = OffsetFetchResponse(groups=[fetched("a", "t", "u", "v")])
    refused = {**topic(Operation.DESCRIBE, "t"), **topic(Operation.DESCRIBE, "v")}
    decisions = {each: refused.get(each, NONE) for each in result.needed(response)}
    assert errors_of(result.visible(response, decisions.__getitem__).groups[0].topics) == [("u", [NONE])]
    decisions[topic_permission(Operation.DESCRIBE, "v")] = BROKEN
    seen = result.visible(response, decisions.__getitem__).groups[0]
    assert (seen.error_code, seen.topics) == (BROKEN, [])


def test_groups_that_may_not_be_described_come_first() -> None:
    request = DescribeGroupsRequest(version=5, groups=["a", "b", "c", "b"])
    refused = {**group(Operation.DESCRIBE, "b"), **group(Operation.DESCRIBE, "c", BROKEN)}
    result = restricted(describe_groups.API, 5, request, refused)
    assert result.request.groups == ["a"]
    merged = result.merge(describe_groups.API.error_response(result.request, NONE, 5))
    assert [(each.group_id, each.error_code) for each in merged.groups] == [
        ("b", NO_GROUP),
        ("c", BROKEN),
        ("b", NO_GROUP),
        ("a", NONE),
    ]


def test_what_may_be_done_with_a_group_is_reported_where_it_is_known_and_asked_for() -> None:
    request = DescribeGroupsRequest(version=5, groups=["a"], include_authorized_operations=True)
    refused = {**group(Operation.DELETE, "a"), **group(Operation.READ, "a", BROKEN)}
    result = restricted(describe_groups.API, 5, request, refused)
    assert result.request is None
    merged = result.merge(describe_groups.API.error_response(request, NONE, 5))
    assert merged.groups[0].authorized_operations == {int(Operation.DESCRIBE)}


def test_groups_that_may_not_be_deleted_come_last_and_once() -> None:
    request = DeleteGroupsRequest(version=2, groups_names=["a", "b", "a", "c", "b"])
    refused = {**group(Operation.DELETE, "a"), **group(Operation.DELETE, "c", BROKEN)}
    result = restricted(delete_groups.API, 2, request, refused)
    assert result.request.groups_names == ["b"]
    assert request.groups_names == ["a", "b", "a", "c", "b"]
    merged = result.merge(delete_groups.API.error_response(result.request, NONE, 2))
    assert [(each.group_id, each.error_code) for each in merged.results] == [
        ("b", NONE),
        ("a", NO_GROUP),
        ("c", BROKEN),
    ]


def test_coordinators_come_in_the_order_in_which_they_were_asked_for() -> None:
    keys = ["a", "b", "c"]
    request = FindCoordinatorRequest(version=4, key_type=0, coordinator_keys=keys)
    refused = {**group(Operation.DESCRIBE, "a", BROKEN), **group(Operation.DESCRIBE, "c")}
    result = restricted(find_coordinator.API, 4, request, refused)
    assert result.request.coordinator_keys == ["b"]
    merged = result.merge(find_coordinator.API.error_response(result.request, NONE, 4))
    assert [(each.key, each.error_code) for each in merged.coordinators] == [
        ("a", BROKEN),
        ("b", NONE),
        ("c", NO_GROUP),
    ]
    assert merged.coordinators[0].error_message.startswith("The server experienced an unexpected error")
    assert merged.coordinators[2].error_message == ""
    refused.update(group(Operation.DESCRIBE, "b"))
    response = restricted(find_coordinator.API, 4, request, refused).response
    assert [each.error_code for each in response.coordinators] == [BROKEN, NO_GROUP, NO_GROUP]


def test_one_coordinator_that_may_not_be_found_has_an_error_with_a_text() -> None:
    request = FindCoordinatorRequest(version=3, key_type=0, key="a")
    response = restricted(find_coordinator.API, 3, request, group(Operation.DESCRIBE, "a")).response
    assert (response.error_code, response.error_message) == (NO_GROUP, "Group authorization failed.")
    assert restricted(find_coordinator.API, 3, request, {}) is PASSES


def test_who_may_not_describe_the_cluster_sees_the_groups_that_they_may_describe() -> None:
    request = ListGroupsRequest(version=4)
    assert restricted(list_groups.API, 4, request, {}) is PASSES
    result = restricted(
        list_groups.API, 4, request, {DESCRIBE_CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
    )
    listed = ListGroupsResponse.ListedGroup
    response = ListGroupsResponse(error_code=0, groups=[listed(group_id=each) for each in "abc"])
    refused = {**group(Operation.DESCRIBE, "a"), **group(Operation.DESCRIBE, "c")}
    decisions = {each: refused.get(each, NONE) for each in result.needed(response)}
    seen = result.visible(response, decisions.__getitem__)
    assert [each.group_id for each in seen.groups] == ["b"]
    decisions[group_permission(Operation.DESCRIBE, "b")] = BROKEN
    refusal = result.visible(response, decisions.__getitem__)
    assert (refusal.error_code, refusal.groups) == (BROKEN, [])


def test_where_it_is_not_known_who_may_describe_the_cluster_no_groups_are_listed() -> None:
    assert restricted(list_groups.API, 4, ListGroupsRequest(version=4), {DESCRIBE_CLUSTER: BROKEN}) == (
        AuthorizationResult(BROKEN)
    )


def test_topics_of_which_it_is_not_known_refuse_all_of_a_fetch_and_a_deletion_as_at_a_broker() -> None:
    assert restricted(offset_delete.API, 0, deletion("a", "b"), topic(Operation.READ, "b", BROKEN)) == (
        AuthorizationResult(BROKEN)
    )
    refused = topic(Operation.DESCRIBE, "t", BROKEN)
    single = OffsetFetchRequest(group_id=GroupId("a"), topics=[OffsetFetchRequestTopic("t", [0])])
    assert restricted(offset_fetch.API, 5, single, refused).error is BROKEN
    result = restricted(offset_fetch.API, 8, fetch({"a": ("t", "u"), "b": ("u",)}), refused)
    assert [each.group_id for each in result.request.groups] == ["b"]
    merged = result.merge(OffsetFetchResponse(groups=[fetched("b", "u")]))
    assert [(each.group_id, each.error_code) for each in merged.groups] == [("a", BROKEN), ("b", 0)]
