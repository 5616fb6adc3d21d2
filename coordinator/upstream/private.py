# SPDX-License-Identifier: Apache-2.0
"""AdoptGroup as those who move groups speak it: a gateway and the command. Its classes are of the api's module."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from coordinator.upstream.adoption import ClusterReading, OwnershipMarker, StoreResult, as_topics
from protocol.errors import ErrorCode
from protocol.names import GroupId

NOTHING_READ = ClusterReading({}, OwnershipMarker(is_adopted=False))


def adopt_request(
    make: Any,
    group: GroupId,
    reading: ClusterReading | None,
    collect: Callable[[Iterator[Any]], Iterable[Any]] = list,
) -> Any:
    """The request, of class `make`; without a reading it only asks.

    `collect` makes of the topics what its writer takes: all of them, or an iterator, for one that writes in steps.
    """
    kind = make.AdoptedTopic
    offsets, mark, is_unknown = reading or NOTHING_READ
    return make(
        version=0,
        group_id=group,
        epoch=mark.epoch,
        asked_ms=mark.asked_ms,
        unknown=is_unknown,
        offsets=None if reading is None else collect(as_topics(offsets, kind, kind.AdoptedPartition)),
    )


def mark_of(answer: Any) -> OwnershipMarker:
    """What an answer says of the group."""
    return OwnershipMarker(bool(answer.adopted), bool(answer.vacant), answer.epoch, answer.asked_ms)


def stored_of(answer: Any, reading: ClusterReading) -> StoreResult | None:
    """What has become of a reading; None where the answer has another error."""
    if answer.error_code == ErrorCode.FENCED_LEADER_EPOCH:
        return StoreResult.STALE
    if answer.error_code != ErrorCode.NONE:
        return None
    if answer.vacant:
        return StoreResult.VACANT
    return StoreResult.TAKEN if answer.taken or not reading.offsets else StoreResult.THERE
