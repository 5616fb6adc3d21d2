# SPDX-License-Identifier: Apache-2.0
"""The rules by api: which operation on which resource, the fields with the names, and the refusals (KafkaApis)."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from coordinator.authorization.group_request_topics import TopicsRulePart
from coordinator.authorization.groups import (
    CoordinatorKeysRule,
    DescribeGroupsRule,
    FindCoordinatorRule,
    ListGroupsRule,
    RefusedGroupsOrder,
    SeveralGroupsRule,
    SingleGroupRule,
)
from coordinator.authorization.offset_fetch import OffsetFetchRule
from coordinator.authorization.permissions import Operation
from coordinator.authorization.rule import Rule, copy_message_with
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.hot.offset_commit import OffsetCommitResponsePartition, OffsetCommitResponseTopic
from protocol.kafka_python_messages import OffsetDeleteResponse
from protocol.sync_group_validation import lacks_protocol

TOPIC_IDS_FROM: Final = 10
"""The version from which on OffsetCommit and OffsetFetch name topics by their ids."""
SEVERAL_KEYS_FROM: Final = 4
"""The version from which on FindCoordinator asks for several groups."""


def _refused_commit(topic: Any, error: ErrorCode, _version: int) -> OffsetCommitResponseTopic:
    rows = [OffsetCommitResponsePartition(each.partition_index, error) for each in topic.partitions]
    return OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=rows)


def _refused_deletion(
    topic: Any, error: ErrorCode, _version: int
) -> OffsetDeleteResponse.OffsetDeleteResponseTopic:
    make = OffsetDeleteResponse.OffsetDeleteResponseTopic
    rows = [
        make.OffsetDeleteResponsePartition(partition_index=each.partition_index, error_code=int(error))
        for each in topic.partitions
    ]
    return make(name=topic.name, partitions=rows)


def _without_member(request: Any) -> Any:
    return copy_message_with(request, member_id="")


def _sync_group_error(request: Any, version: int) -> ErrorCode:
    return ErrorCode.INCONSISTENT_GROUP_PROTOCOL if lacks_protocol(request, version) else ErrorCode.NONE


RULES: Final[Mapping[int, Rule]] = MappingProxyType(
    {
        # A broker names no member in this refusal (JoinGroupRequest.getErrorResponse).
        ApiKey.JOIN_GROUP: SingleGroupRule(refused_as=_without_member),
        ApiKey.SYNC_GROUP: SingleGroupRule(checked_before=_sync_group_error),
        ApiKey.HEARTBEAT: SingleGroupRule(),
        ApiKey.LEAVE_GROUP: SingleGroupRule(),
        ApiKey.OFFSET_COMMIT: SingleGroupRule(
            topics=TopicsRulePart(Operation.READ, _refused_commit, ids_from=TOPIC_IDS_FROM), needs_topics=True
        ),
        ApiKey.OFFSET_FETCH: OffsetFetchRule(TOPIC_IDS_FROM),
        ApiKey.OFFSET_DELETE: SingleGroupRule(
            Operation.DELETE,
            topics=TopicsRulePart(Operation.READ, _refused_deletion, refuses_all_unknown=True),
        ),
        ApiKey.DESCRIBE_GROUPS: DescribeGroupsRule(
            Operation.DESCRIBE, "groups", "groups", RefusedGroupsOrder.FIRST
        ),
        ApiKey.DELETE_GROUPS: SeveralGroupsRule(
            Operation.DELETE, "groups_names", "results", RefusedGroupsOrder.LAST
        ),
        ApiKey.FIND_COORDINATOR: FindCoordinatorRule(
            CoordinatorKeysRule(
                Operation.DESCRIBE, "coordinator_keys", "coordinators", RefusedGroupsOrder.AS_ASKED
            ),
            SEVERAL_KEYS_FROM,
        ),
        ApiKey.LIST_GROUPS: ListGroupsRule(),
    }
)
