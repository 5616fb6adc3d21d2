# SPDX-License-Identifier: Apache-2.0
"""The order in which a group moves in and out. Pure: the coordinator and the cluster are behind two ports.

Moving in (`adopt_group`):

1. the group's coordinator here is asked whether it has the group already; then nothing else is done. It also returns
   how often groups went from here to the cluster;
2. the cluster is asked for the group's state; a group of any kind with members stays at the cluster, unless it is taken
   all the same, and so does a share group without members;
3. its offsets at the cluster are read, once no open transaction can change them, or add the first one of a partition;
4. the cluster is asked once more: a consumer that joined meanwhile may have committed offsets that were not read;
5. the coordinator stores the offsets and the mark in one turn, unless the mark exists by now. It stores nothing, and
   all steps start again, if a group has gone to the cluster since step 1, as it may be this one, with newer offsets;
   if a topic was deleted since, as its offsets may have been read; or if steps 3 to 5 took longer than some seconds.

For a group that exists neither here nor at the cluster the coordinator stores nothing; the group may be served for a
moment, and gets its mark with the first record that is stored for it.

Only what step 5 made durable counts, so an attempt that is stopped before it has done nothing, and of several at once
one wins and the others find the mark. No client is served before the mark exists: so the cluster's offsets can replace
no newer ones here.

The two reads of the cluster miss a consumer that joins there in the instant after the second one: a group is to be
moved while its clients are away, or on their way here.

Moving out (`give_back_group`):

1. the coordinator here closes the group, unless it has members: for some seconds, which each further request
   restarts, clients that join it, commit in it or delete something of it get a retriable error. Reading goes on;
2. the offsets here are read;
3. the cluster is asked for the group's state, as it takes no offsets for a group with members, and which of these
   offsets it would refuse;
4. the group is closed once more, as steps 2 and 3 may have taken long;
5. the offsets are committed at the cluster; the group's other offsets at the cluster (they were deleted here, have
   expired, or were committed there meanwhile) are reported, and deleted only if that was asked for;
6. the coordinator removes the mark and the offsets in one turn if these are still exactly the group's offsets and it
   has no members; if they changed, all steps start again.

A group that cannot go is opened again at once. Nothing is written before step 5, and a dry run, which asks the same and
closes nothing, reports the same. Offsets that the cluster took in step 5 for a group that stays are reported.

An attempt that is stopped before step 6 has only changed offsets at the cluster, and the group opens by itself; the
next attempt writes newer ones. An attempt that was suspended for too long finds members, or other offsets, in step 6,
and so does one whose group was opened by a new leader of its partition. Two attempts at once could write older offsets
after newer ones, so only one may run at a time.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from coordinator.cluster_requests.model import ClusterGroupState, Offsets, TopicPartition
from coordinator.migration.model import (
    CHANGED,
    STALE,
    AdoptResult,
    AdoptStatus,
    ClusterReading,
    GiveBackResult,
    GiveBackStatus,
    Ownership,
)
from protocol.errors import ErrorCode
from protocol.newtypes import GroupId

ATTEMPTS_MAX: Final = 10
"""The most attempts to give back a group that goes on committing, or to adopt one that comes and goes."""
MAY_BE_WRITTEN: Final = "the cluster may have taken offsets of it, while it is still here: run this again"
"""The note on an error that has stopped an attempt to give a group back."""


class AdoptionTarget(Protocol):
    """The coordinator here, as far as moving a group in needs it. Its methods raise if it cannot be reached."""

    async def find_ownership(self, group: GroupId) -> Ownership:
        """Return the coordinator's statement on the group."""

    async def adopt(self, group: GroupId, reading: ClusterReading) -> Ownership:
        """Store offsets and mark in one turn, unless the mark exists or the reading is STALE."""


class LocalCoordinator(AdoptionTarget, Protocol):
    """The coordinator of groups here. Its methods raise if it cannot be reached; no error is swallowed.

    Three of them return NONE, or why a group stays: NON_EMPTY_GROUP if it has members, and GROUP_ID_NOT_FOUND if there
    is nothing of it here.
    """

    async def check_give_back(self, group: GroupId) -> ErrorCode:
        """Return NONE if the group could go to the cluster now. Changes nothing."""

    async def close_for_give_back(self, group: GroupId) -> ErrorCode:
        """As `check_give_back`; a group that could go is closed to changes by clients for some seconds."""

    async def reopen_group(self, group: GroupId) -> None:
        """Let clients change the group again. Never raises: if this fails, the group opens by itself."""

    async def fetch_all_offsets(self, group: GroupId) -> Offsets:
        """Return all offsets of the group here; only called for a group that could go."""

    async def remove_group_if_unchanged(self, group: GroupId, offsets: Offsets) -> ErrorCode:
        """Remove mark and offsets in one turn and return NONE, or CHANGED if the offsets are not exactly these."""


class ClusterCoordinator(Protocol):
    """The groups that the cluster coordinates (`UpstreamGroups`). Its methods raise UpstreamError."""

    async def fetch_group_state(self, group: GroupId) -> ClusterGroupState:
        """Return the state of the group at the cluster."""

    async def wait_for_open_transactions(self, group: GroupId) -> None:
        """Return once no open transaction has offsets of the group."""

    async def fetch_committed_offsets(self, group: GroupId) -> Offsets:
        """Return all stable offsets of the group at the cluster."""

    async def predict_commit_errors(self, group: GroupId, offsets: Offsets) -> Mapping[TopicPartition, int]:
        """Return the error codes of partitions that `commit` would refuse, as far as that shows without writing."""

    async def commit(self, group: GroupId, offsets: Offsets) -> Mapping[TopicPartition, int]:
        """Commit for a group without members; return the error codes of partitions that were refused."""

    async def delete_offsets(
        self, group: GroupId, places: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, int]:
        """Delete offsets of a group without members; return the error codes of partitions that were refused."""


async def adopt_group(
    here: AdoptionTarget,
    there: ClusterCoordinator,
    group: GroupId,
    *,
    take_live: bool = False,
    dry_run: bool = False,
) -> AdoptResult:
    """Move a group in; with `dry_run` only predict the result.

    Raises what the ports raise: the group is then not adopted, or it is unknown whether it is.

    `take_live` also takes a group with members at the cluster: what they commit there from now on is lost. Nothing of
    a share group is taken, as it has no committed offsets: it goes on there, and a group of the same id exists here.
    """
    for _ in range(ATTEMPTS_MAX):
        result = await _adopt_once(here, there, group, take_live, dry_run)
        if result is not None:
            return result
    return AdoptResult(group, AdoptStatus.BUSY)


async def _adopt_once(
    here: AdoptionTarget, there: ClusterCoordinator, group: GroupId, take_live: bool, dry_run: bool
) -> AdoptResult | None:
    """Move a group in; return None if the reading of the cluster is too old by now."""
    mark = await here.find_ownership(group)
    if mark.is_adopted or mark.is_confirmed_absent:
        return AdoptResult(group, _find_status(mark))
    state = await there.fetch_group_state(group)
    stays = None if take_live else _stays_there(state)
    if stays is not None:
        return AdoptResult(group, stays, state=state)
    if state.is_present_in_cluster:
        await there.wait_for_open_transactions(group)
        mark = await here.find_ownership(group)  # the wait may have been long: the reading begins now
        if mark.is_adopted:
            return AdoptResult(group, AdoptStatus.ALREADY)
    offsets = await there.fetch_committed_offsets(group)
    state = await there.fetch_group_state(group)
    stays = None if take_live else _stays_there(state)
    if stays is not None:
        return AdoptResult(group, stays, state=state)
    is_unknown = not offsets and not state.is_present_in_cluster
    if dry_run:
        return AdoptResult(
            group, AdoptStatus.CONFIRMED_ABSENT if is_unknown else AdoptStatus.ADOPTED, offsets, state
        )
    stored = await here.adopt(group, ClusterReading(offsets, mark.epoch, mark.asked_ms, is_unknown))
    if stored.error is STALE:
        return None
    if stored.taken >= 0:
        return AdoptResult(group, AdoptStatus.ADOPTED, offsets, state)
    return AdoptResult(group, _find_status(stored), state=state)


def _find_status(owned: Ownership) -> AdoptStatus:
    return AdoptStatus.CONFIRMED_ABSENT if owned.is_confirmed_absent else AdoptStatus.ALREADY


def _stays_there(state: ClusterGroupState) -> AdoptStatus | None:
    if state.is_share:
        return AdoptStatus.SHARE
    return AdoptStatus.LIVE if state.is_live else None


async def give_back_group(
    here: LocalCoordinator,
    there: ClusterCoordinator,
    group: GroupId,
    *,
    delete_rest: bool = False,
    dry_run: bool = False,
) -> GiveBackResult:
    """Move a group out; with `dry_run` only predict the result.

    Raises what the ports raise: the group is then still here, or it is unknown whether it is.

    If the cluster refuses a partition (of a topic that is gone), its offset does not move, and the group stays here.
    `delete_rest` deletes the group's other offsets at the cluster: those that were deleted here would count again
    there, but offsets that a consumer which never moved has committed there are deleted as well.
    """
    giving = _GivingBack(here, there, group, delete_rest)
    if dry_run:
        return await giving.predict()
    try:
        result = await giving.run()
    except GeneratorExit:
        raise  # the caller is gone, and no more requests can be sent
    except BaseException as error:
        if giving.is_writing:
            error.add_note(MAY_BE_WRITTEN)
        await giving.reopen()
        raise
    if result.outcome is not GiveBackStatus.GIVEN:
        await giving.reopen()
    return result


class _GivingBack:
    """One group that is to move out, with the state of its move."""

    def __init__(
        self, here: LocalCoordinator, there: ClusterCoordinator, group: GroupId, delete_rest: bool
    ) -> None:
        self._here = here
        self._there = there
        self._group = group
        self._delete_rest = delete_rest
        self._offsets: Offsets = {}
        self._written: set[TopicPartition] = set()
        self._is_closed = False
        self.is_writing = False
        """True if offsets were sent to the cluster, which it may have stored."""

    async def predict(self) -> GiveBackResult:
        """Return the result that `run` would have now, and change nothing."""
        stays = await self._stays(await self._here.check_give_back(self._group))
        if stays is not None:
            return stays
        rest = () if self._delete_rest else await self._rest()
        return self._result(GiveBackStatus.GIVEN, rest=rest)

    async def run(self) -> GiveBackResult:
        """Write the group's offsets to the cluster, and have the group removed here. Return the result."""
        for _ in range(ATTEMPTS_MAX):
            result = await self._once()
            if result is not None:
                return result
        return self._result(GiveBackStatus.BUSY)

    async def _once(self) -> GiveBackResult | None:
        """Write the offsets there and remove them here; return None if they have changed meanwhile."""
        here, there, group = self._here, self._there, self._group
        stays = await self._stays(await self._close())
        if stays is not None:
            return stays
        error = await self._close()
        if error is not ErrorCode.NONE:
            return self._result(_OUTCOMES[error])
        refused = await self._commit()
        rest = await self._rest()
        if rest and self._delete_rest and not refused:
            refused, rest = await there.delete_offsets(group, rest), ()
        if refused:
            return self._result(GiveBackStatus.REFUSED, refused=refused)
        error = await here.remove_group_if_unchanged(group, self._offsets)
        return None if error is CHANGED else self._result(_OUTCOMES[error], rest=rest)

    async def _close(self) -> ErrorCode:
        self._is_closed = True  # even if the answer is lost
        error = await self._here.close_for_give_back(self._group)
        self._is_closed = error is ErrorCode.NONE
        return error

    async def reopen(self) -> None:
        """Let clients change the group again if it was closed."""
        if self._is_closed:
            await self._here.reopen_group(self._group)

    async def _stays(self, error: ErrorCode) -> GiveBackResult | None:
        """Return why the group cannot go, as far as that shows before anything is written; None if it can.

        Reasons are members here, members there, a share group, which takes no offsets, and offsets that are refused.
        """
        if error is not ErrorCode.NONE:
            return self._result(_OUTCOMES[error])
        self._offsets = await self._here.fetch_all_offsets(self._group)
        state = await self._there.fetch_group_state(self._group)
        if state.is_live:
            return self._result(GiveBackStatus.LIVE_THERE, state=state)
        if state.is_share:
            return self._result(GiveBackStatus.SHARE_THERE, state=state)
        refused = await self._there.predict_commit_errors(self._group, self._offsets) if self._offsets else {}
        return self._result(GiveBackStatus.REFUSED, refused=refused) if refused else None

    async def _commit(self) -> Mapping[TopicPartition, int]:
        """Write the offsets to the cluster, and return those that it refused."""
        if not self._offsets:
            return {}
        self.is_writing = True
        refused = await self._there.commit(self._group, self._offsets)
        self._written |= self._offsets.keys() - refused.keys()
        return refused

    async def _rest(self) -> Sequence[TopicPartition]:
        return tuple(sorted(set(await self._there.fetch_committed_offsets(self._group)) - set(self._offsets)))

    def _result(
        self,
        outcome: GiveBackStatus,
        *,
        refused: Mapping[TopicPartition, int] | None = None,
        rest: Sequence[TopicPartition] = (),
        state: ClusterGroupState | None = None,
    ) -> GiveBackResult:
        written = () if outcome is GiveBackStatus.GIVEN else tuple(sorted(self._written))
        return GiveBackResult(self._group, outcome, self._offsets, refused or {}, rest, written, state)


_OUTCOMES: Final = {
    ErrorCode.NONE: GiveBackStatus.GIVEN,
    ErrorCode.NON_EMPTY_GROUP: GiveBackStatus.LIVE_HERE,
    ErrorCode.GROUP_ID_NOT_FOUND: GiveBackStatus.NOTHING,
}
