# SPDX-License-Identifier: Apache-2.0
"""The rules by api."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from coordinator.gateway.rules.delete_groups import DeleteGroups
from coordinator.gateway.rules.describe_groups import DescribeGroups
from coordinator.gateway.rules.find_coordinator import FindCoordinator
from coordinator.gateway.rules.list_groups import ListGroups
from coordinator.gateway.rules.membership import JoinGroup, OneGroup
from coordinator.gateway.rules.offset_commit import OffsetCommit
from coordinator.gateway.rules.offset_delete import OffsetDelete
from coordinator.gateway.rules.offset_fetch import OffsetFetch
from coordinator.gateway.rules.rule import AnyRule
from protocol.apis import ApiKey
from protocol.hot.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.hot.leave_group import LeaveGroupRequest, LeaveGroupResponse
from protocol.hot.sync_group import SyncGroupRequest, SyncGroupResponse

RULES: Final[Mapping[int, AnyRule]] = MappingProxyType(
    {
        ApiKey.JOIN_GROUP: JoinGroup(),
        ApiKey.SYNC_GROUP: OneGroup[SyncGroupRequest, SyncGroupResponse](),
        ApiKey.HEARTBEAT: OneGroup[HeartbeatRequest, HeartbeatResponse](),
        ApiKey.LEAVE_GROUP: OneGroup[LeaveGroupRequest, LeaveGroupResponse](),
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
