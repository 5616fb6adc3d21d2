# SPDX-License-Identifier: Apache-2.0
"""AdoptGroup as those who move groups speak it: a gateway and the command. Its classes are of the api's module."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from coordinator.upstream.adoption import Mark, Reading, Stored, as_topics
from protocol.errors import ErrorCode
from protocol.names import GroupId

NOTHING_READ = Reading({}, Mark(is_adopted=False))


def adopt_request(
    make: Any,
    group: GroupId,
    reading: Reading | None,
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


def mark_of(answer: Any) -> Mark:
    """What an answer says of the group."""
    return Mark(bool(answer.adopted), bool(answer.vacant), answer.epoch, answer.asked_ms)


def stored_of(answer: Any, reading: Reading) -> Stored | None:
    """What has become of a reading; None where the answer has another error."""
    if answer.error_code == ErrorCode.FENCED_LEADER_EPOCH:
        return Stored.STALE
    if answer.error_code != ErrorCode.NONE:
        return None
    if answer.vacant:
        return Stored.VACANT
    return Stored.TAKEN if answer.taken or not reading.offsets else Stored.THERE
