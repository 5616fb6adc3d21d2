# SPDX-License-Identifier: Apache-2.0
"""AdoptGroup, CloseGroup, GiveBackGroup and LocateGroups v0: the private apis between our own processes.

Their fields are in the schemas.
"""

from typing import TYPE_CHECKING, Any

from kafka.protocol.api_message import ApiMessage

from protocol.newtypes import GroupId

if TYPE_CHECKING:

    class _Message(ApiMessage):
        def __init__(self, *, version: int = 0, **fields: Any) -> None: ...
else:
    _Message = ApiMessage


class AdoptGroupRequest(_Message, load_json="protocol.schemas"):
    """A group and the offsets that the cluster has for it; without offsets the request only asks for its state.

    `epoch` and `asked_ms` are copied from the response to an earlier request without offsets, sent before the cluster
    was read. `unknown` is True if the cluster does not know the group.
    """

    AdoptedTopic: Any
    group_id: GroupId
    epoch: int
    asked_ms: int
    unknown: bool
    offsets: list[Any] | None


class AdoptGroupResponse(_Message, load_json="protocol.schemas"):
    """The state of a group, `adopted` if it was taken over, and the number of offsets that this request took over.

    The number is -1 if the request took nothing over. A `confirmed_absent` group exists neither here nor in the
    cluster; requests for it are allowed for a moment. The error is FENCED_LEADER_EPOCH if the offsets read from the
    cluster may be outdated by now.
    """

    error_code: int
    adopted: bool
    confirmed_absent: bool
    epoch: int
    asked_ms: int
    taken: int


class CloseGroupRequest(_Message, load_json="protocol.schemas"):
    """A request to take one `CloseGroupStep` for a group."""

    group_id: GroupId
    step: int


class CloseGroupResponse(_Message, load_json="protocol.schemas"):
    """The outcome of the step: NONE if it was taken or, for `ASK`, if the group could be closed.

    NON_EMPTY_GROUP: the group has members. GROUP_ID_NOT_FOUND: the node has nothing of the group.
    """

    error_code: int


class GiveBackGroupRequest(_Message, load_json="protocol.schemas"):
    """A group, and the offsets that were written to the cluster."""

    GivenTopic: Any
    group_id: GroupId
    offsets: list[Any]


class GiveBackGroupResponse(_Message, load_json="protocol.schemas"):
    """The outcome: NONE if the group now belongs to the cluster."""

    error_code: int


class LocateGroupsRequest(_Message, load_json="protocol.schemas"):
    """The ids of groups to locate.

    `discard_readings` is set after the cluster has deleted data of these groups. For groups that are not here, the node
    then stores no data that was read from the cluster before.
    """

    group_ids: list[GroupId]
    discard_readings: bool


class LocateGroupsResponse(_Message, load_json="protocol.schemas"):
    """A flag for each group, in the order of the request: True if the group is here, or this node does not serve it."""

    error_code: int
    here: list[bool]
