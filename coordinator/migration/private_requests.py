# SPDX-License-Identifier: Apache-2.0
"""Requests about groups that move: AdoptGroup, CloseGroup and GiveBackGroup v0, to the group's coordinator here.

Only the private sockets of nodes behind a gateway take them.
"""

from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, Final

from coordinator.cluster_requests.model import Offsets, TopicPartition, TransferredOffset
from coordinator.cluster_requests.request import ClusterRequest, make_request
from coordinator.cluster_requests.retrying import raise_for_code
from coordinator.migration.model import CHANGED, STALE, ClusterReading, Ownership
from protocol.apis import ApiKey, VersionRange
from protocol.errors import ErrorCode
from protocol.newtypes import GroupId

if TYPE_CHECKING:
    from protocol.private_messages import AdoptGroupResponse

ROWS_AT_ONCE: Final = 50
"""The number of a request's offsets that are made together."""
_V0: Final = VersionRange(0, 0)


class CloseGroupStep(IntEnum):
    """A step of giving a group back."""

    ASK = 0
    """Only report whether the group can be given back."""
    CLOSE = 1
    """Close the group if it can be given back. If it is closed already, restart the time until it opens."""
    REOPEN = 2
    """Let clients change the group again."""


def find_ownership(group: GroupId) -> ClusterRequest[Ownership]:
    """Ask whether a group was taken over, or is confirmed absent."""
    return _adopt_request(group, ClusterReading({}, 0, 0), None)


def adopt(
    group: GroupId,
    reading: ClusterReading,
    collect: Callable[[Iterator[Any]], Iterable[Any]] = list,
) -> ClusterRequest[Ownership]:
    """Ask the coordinator to take a group over as it was read from the cluster; the error of the result may be STALE.

    `collect` turns the topics into what the request's writer takes: a list, or an iterator if it writes in steps.
    """
    from protocol.private_messages import AdoptGroupRequest

    kind = AdoptGroupRequest.AdoptedTopic
    return _adopt_request(
        group, reading, collect(make_topic_structs(reading.offsets, kind, kind.AdoptedPartition))
    )


def _adopt_request(
    group: GroupId, reading: ClusterReading, topics: Iterable[Any] | None
) -> ClusterRequest[Ownership]:
    from protocol.private_messages import AdoptGroupRequest

    def read(response: "AdoptGroupResponse") -> Ownership:
        error = _read_error(response, {STALE}, f"adopting group {group}")
        return Ownership(
            error,
            bool(response.adopted),
            bool(response.confirmed_absent),
            response.epoch,
            response.asked_ms,
            response.taken,
        )

    message = AdoptGroupRequest(
        group_id=group,
        epoch=reading.epoch,
        asked_ms=reading.asked_ms,
        unknown=reading.is_unknown,
        offsets=topics,
    )
    return make_request(ApiKey.ADOPT_GROUP, message, read, _V0)


def close_group(group: GroupId, step: CloseGroupStep) -> ClusterRequest[ErrorCode]:
    """Ask the coordinator to take a step; the result is NONE, NON_EMPTY_GROUP or GROUP_ID_NOT_FOUND."""
    from protocol.private_messages import CloseGroupRequest

    doing = f"asking whether group {group} could be given back"
    return make_request(
        ApiKey.CLOSE_GROUP,
        CloseGroupRequest(group_id=group, step=step),
        lambda response: _read_error(response, _STAYS, doing),
        _V0,
    )


def give_back_group(group: GroupId, offsets: Offsets) -> ClusterRequest[ErrorCode]:
    """Ask the coordinator to remove a group; the result is NONE, CHANGED, NON_EMPTY_GROUP or GROUP_ID_NOT_FOUND."""
    from protocol.private_messages import GiveBackGroupRequest

    kind = GiveBackGroupRequest.GivenTopic
    return make_request(
        ApiKey.GIVE_BACK_GROUP,
        GiveBackGroupRequest(
            group_id=group, offsets=list(make_topic_structs(offsets, kind, kind.GivenPartition))
        ),
        lambda response: _read_error(response, {CHANGED, *_STAYS}, f"giving group {group} back"),
        _V0,
    )


_STAYS: Final = frozenset({ErrorCode.NON_EMPTY_GROUP, ErrorCode.GROUP_ID_NOT_FOUND})
"""The errors of groups that cannot go to the cluster."""


def _read_error(response: Any, results: Iterable[ErrorCode], doing: str) -> ErrorCode:
    """Return the error of a response if it is NONE or one of `results`; raise for all others."""
    code = response.error_code
    if code not in results:
        raise_for_code(code, None, doing)
    return ErrorCode(code)


def make_topic_structs(offsets: Offsets, kind: Any, row: Any) -> Iterator[Any]:
    """Yield the topic structs of AdoptGroup and GiveBackGroup: each is a `kind` with a `row` for each offset.

    A topic is yielded several times if it has many rows, or if these are apart in `offsets`.
    """

    def made(place: TopicPartition, offset: TransferredOffset) -> Any:
        return row(
            partition_index=place.partition,
            committed_offset=offset.offset,
            committed_leader_epoch=offset.leader_epoch,
            committed_metadata=offset.metadata,
        )

    for topic, its in groupby(offsets.items(), lambda item: item[0].topic):
        while rows := [made(*item) for item in islice(its, ROWS_AT_ONCE)]:
            yield kind(topic=topic, partitions=rows)
