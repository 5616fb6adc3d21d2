# SPDX-License-Identifier: Apache-2.0
"""The results of a command for each group, for people and for programs."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from coordinator.cluster_requests.model import ClusterGroupState, Offsets, TopicPartition
from coordinator.migration.model import AdoptResult, AdoptStatus, GiveBackResult, GiveBackStatus
from protocol.errors import error_name

DONE: Final = frozenset(
    {
        AdoptStatus.ADOPTED,
        AdoptStatus.ALREADY,
        AdoptStatus.CONFIRMED_ABSENT,
        GiveBackStatus.GIVEN,
        GiveBackStatus.NOTHING,
    }
)
TO_ADOPT: Final = {
    AdoptStatus.LIVE: "stop them first, or use --force",
    AdoptStatus.SHARE: "it has no committed offsets to take over; use another group id here",
}
"""The advice about a group that stays at the cluster."""
TO_GIVE_BACK: Final = {
    GiveBackStatus.LIVE_HERE: "stop its consumers first",
    GiveBackStatus.LIVE_THERE: "stop them first",
    GiveBackStatus.SHARE_THERE: "it accepts no offsets; delete it there first",
}
FAILED: Final = "failed"
NAMED_MAX: Final = 5
GIVEN: Final = GiveBackStatus.GIVEN.value
"""The result of a group that the cluster has again."""


class MovedOffset(msgspec.Struct, frozen=True):
    """One committed offset that was moved with its group."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str


class GroupMoveResult(msgspec.Struct, frozen=True):
    """The result for one group: `result` in words, `moved` is true if the group is where it was to go."""

    group: str
    result: str
    moved: bool
    reason: str | None
    offsets: list[MovedOffset]
    written: list[MovedOffset] = []
    """The offsets that the cluster has taken although the group is not given back."""


def make_group_adoption_result(result: AdoptResult, *, dry_run: bool) -> GroupMoveResult:
    """Return the result of `adopt` for a group."""
    outcome = result.outcome
    words = "would be adopted" if dry_run and outcome is AdoptStatus.ADOPTED else outcome.value
    reason = _there(result.state, TO_ADOPT[outcome]) if outcome in TO_ADOPT else None
    return GroupMoveResult(result.group, words, outcome in DONE, reason, _offsets(result.offsets))


def make_group_give_back_result(result: GiveBackResult, *, dry_run: bool) -> GroupMoveResult:
    """Return the result of `give-back` for a group."""
    outcome = result.outcome
    words = "would be given back" if dry_run and outcome is GiveBackStatus.GIVEN else outcome.value
    reasons = [
        _there(result.state, TO_GIVE_BACK[outcome]) if outcome in TO_GIVE_BACK else "",
        _refusals(result.refused),
        _named("written to the cluster nevertheless", result.written),
        _named("not here, and still at the cluster", result.rest),
    ]
    written = {place: result.offsets[place] for place in result.written if place in result.offsets}
    return GroupMoveResult(
        result.group,
        words,
        outcome in DONE,
        "; ".join(filter(None, reasons)) or None,
        _offsets(result.offsets),
        _offsets(written),
    )


def make_failed_move_result(group: str, error: Exception) -> GroupMoveResult:
    """Return the result for a group that an error kept from being moved."""
    return GroupMoveResult(group, FAILED, False, describe_error(error), [])


def describe_error(error: Exception) -> str:
    """Return an error in one line, with the notes added to it."""
    return "; ".join([str(error), *getattr(error, "__notes__", ())])


def print_results(results: Sequence[GroupMoveResult], *, json: bool) -> None:
    """Print a table, or with `json` one JSON document, which also contains the offsets."""
    from coordinator.cli import render

    if json:
        render.print_json(list(results))
        return
    render.print_table(
        ["GROUP", "RESULT", "OFFSETS", "REASON"],
        [(each.group, each.result, len(each.offsets), each.reason) for each in results],
    )


def _offsets(offsets: Offsets) -> list[MovedOffset]:
    return [
        MovedOffset(place.topic, place.partition, offset.offset, offset.leader_epoch, offset.metadata)
        for place, offset in sorted(offsets.items())
    ]


def _there(state: ClusterGroupState | None, advice: str) -> str:
    if state is None:
        return advice
    return f"{state.kind} group, {state.state}, {state.members} members: {advice}"


def _named(what: str, places: Sequence[TopicPartition]) -> str:
    """Return a line that names the first partitions only, since a hundred do not fit; empty if there are none."""
    if not places:
        return ""
    named = ", ".join(map(str, places[:NAMED_MAX]))
    more = f" and {len(places) - NAMED_MAX} more" if len(places) > NAMED_MAX else ""
    return f"{what}: {named}{more}"


def _refusals(refused: Mapping[TopicPartition, int]) -> str:
    return ", ".join(f"{place}: {error_name(code)}" for place, code in sorted(refused.items()))
