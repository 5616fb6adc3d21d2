# SPDX-License-Identifier: Apache-2.0
"""The client side of AdoptGroup, for a gateway and the command; the message classes are in the api's module."""

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
    """Return the request, of class `make`; without a reading it only asks for the mark.

    `collect` turns the topics into what the request's writer takes: a list, or an iterator if it writes in steps.
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
    """Return the group's mark in a response."""
    return OwnershipMarker(bool(answer.adopted), bool(answer.confirmed_absent), answer.epoch, answer.asked_ms)


def store_result_from(answer: Any, reading: ClusterReading) -> StoreResult | None:
    """Return the outcome of storing a reading; None if the response has another error."""
    if answer.error_code == ErrorCode.FENCED_LEADER_EPOCH:
        return StoreResult.STALE
    if answer.error_code != ErrorCode.NONE:
        return None
    if answer.confirmed_absent:
        return StoreResult.CONFIRMED_ABSENT
    return StoreResult.TAKEN if answer.taken or not reading.offsets else StoreResult.THERE
