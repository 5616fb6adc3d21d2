# SPDX-License-Identifier: Apache-2.0
"""The client side of AdoptGroup, for a gateway and the command; the message classes are in the api's module."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from coordinator.upstream.adoption import (
    FetchedGroupOffsets,
    LocalOwnershipState,
    StoreAttemptOutcome,
    make_adoption_topic_structs,
)
from protocol.errors import ErrorCode
from protocol.newtypes import GroupId

NOTHING_READ = FetchedGroupOffsets({}, LocalOwnershipState(is_adopted=False))


def build_adopt_request(
    make: Any,
    group: GroupId,
    reading: FetchedGroupOffsets | None,
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
        offsets=None
        if reading is None
        else collect(make_adoption_topic_structs(offsets, kind, kind.AdoptedPartition)),
    )


def get_marker_from_response(answer: Any) -> LocalOwnershipState:
    """Return the group's mark in a response."""
    return LocalOwnershipState(
        bool(answer.adopted), bool(answer.confirmed_absent), answer.epoch, answer.asked_ms
    )


def parse_store_result(answer: Any, reading: FetchedGroupOffsets) -> StoreAttemptOutcome | None:
    """Return the outcome of storing a reading; None if the response has another error."""
    if answer.error_code == ErrorCode.FENCED_LEADER_EPOCH:
        return StoreAttemptOutcome.STALE
    if answer.error_code != ErrorCode.NONE:
        return None
    if answer.confirmed_absent:
        return StoreAttemptOutcome.CONFIRMED_ABSENT
    return StoreAttemptOutcome.TAKEN if answer.taken or not reading.offsets else StoreAttemptOutcome.THERE
