# SPDX-License-Identifier: Apache-2.0
"""In which order a group moves in and out. Pure: the coordinator and the cluster are behind two ports.

Moving in (`adopt_group`):

1. the group's coordinator here is asked whether it has the group already; then nothing else is done. It also says how
   often groups went from here to the cluster;
2. the cluster is asked what the group is there; one with members stays where it is (unless it is taken all the same),
   of whichever kind it is, and so does a share group without any;
3. its offsets there are read, once no transaction is under way that could change them, or bring the first of a
   partition;
4. the cluster is asked once more: a consumer that joined meanwhile has perhaps committed what was not read;
5. the coordinator stores the offsets and the mark in one turn, unless the mark is there by now. If a group has gone to
   the cluster since 1, it may be this one, with newer offsets: then it stores nothing, and all begins anew, as it does
   where a topic was deleted since, which may be among those that were read, or steps 3 to 5 took longer than some
   seconds.

Of a group that is nowhere the coordinator stores nothing; it may be asked for, for a moment, and gets its mark with the
first thing that is stored of it.

Only what step 5 made durable counts, so an attempt that is stopped before it has done nothing, and of several at once
one wins and the others find the mark. No client is served before it is there: so there is no newer offset here that
an older one of the cluster could replace.

What the two looks at the cluster cannot see is a consumer that joins there in the instant after the second one: a group
is to be moved while its clients are away, or on their way here.

Moving out (`give_back_group`):

1. the coordinator here closes the group, unless it has members: for some seconds, which each further request begins
   anew, clients that want to join it, commit in it or delete something of it are told to try again. Reading goes on;
2. the offsets here are read;
3. the cluster is asked what the group is there, as it takes no offsets for one with members, and what it would refuse
   of these offsets;
4. the group is closed once more, as that may have taken long;
5. the offsets are committed there; what else the cluster has of the group (it was deleted here, or has expired, or was
   committed there meanwhile) is named, and deleted there only if that was asked for;
6. the coordinator takes the mark and the offsets away in one turn if these are still exactly the group's offsets and it
   has no members; if they changed, all begins anew.

A group that cannot go is opened again at once. Up to step 5 nothing was written, and a dry run, which asks the same and
closes nothing, says the same. Whatever the cluster took in step 5 of a group that stays is named.

An attempt that is stopped before step 6 has only changed offsets at the cluster, and the group opens by itself; the
next attempt writes newer ones. One that was asleep for too long finds members, or other offsets, in step 6, as does one
whose group was opened by a new leader of its partition. Two at once could write older ones after newer ones, so there
must be one at a time.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import groupby, islice
from typing import Any, Final, NamedTuple, Protocol

from protocol.names import GroupId

ATTEMPTS_MAX: Final = 10
"""How often a group that goes on committing is given back anew before that is called off, or one taken over anew that
comes and goes."""
MAY_BE_WRITTEN: Final = "the cluster may have taken offsets of it, while it is still here: run this again"
"""A note on the error that has stopped an attempt to give a group back."""
ROWS_AT_ONCE: Final = 50
"""So many offsets of a request are made together."""


class TopicPartition(NamedTuple):
    """A partition of a topic that groups read."""

    topic: str
    partition: int


class Offset(NamedTuple):
    """A committed offset with what belongs to it; `leader_epoch` is -1 where it is not known."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


Offsets = Mapping[TopicPartition, Offset]


def as_topics(offsets: Offsets, kind: Any, row: Any) -> Iterator[Any]:
    """Make offsets one by one as AdoptGroup and GiveBackGroup have them: a `row` for each, in `kind`s of one topic.

    A topic stands there several times where it has many rows, or where these are apart in `offsets`.
    """

    def made(place: TopicPartition, offset: Offset) -> Any:
        return row(
            partition_index=place.partition,
            committed_offset=offset.offset,
            committed_leader_epoch=offset.leader_epoch,
            committed_metadata=offset.metadata,
        )

    for topic, its in groupby(offsets.items(), lambda item: item[0].topic):
        while rows := [made(*item) for item in islice(its, ROWS_AT_ONCE)]:
            yield kind(topic=topic, partitions=rows)


@dataclass(frozen=True, slots=True)
class ClusterGroupState:
    """A group as the cluster has it.

    `kind` is `classic`, `consumer` (KIP-848), `streams` (KIP-1071), `share` (KIP-932), or empty where there is none.
    """

    kind: str
    state: str
    members: int

    @classmethod
    def none(cls) -> "ClusterGroupState":
        """There is no such group."""
        return cls("", "Dead", 0)

    @property
    def is_known(self) -> bool:
        """Whether the cluster has anything of it; one with nothing but offsets is known, too."""
        return bool(self.kind)

    @property
    def is_live(self) -> bool:
        """Whether somebody is in it, or about to be: the cluster still coordinates it."""
        return self.members > 0 or self.state not in _WITHOUT_MEMBERS

    @property
    def is_share(self) -> bool:
        """Whether it is a share group, with members or without.

        No classic group can come of one: a broker answers a JoinGroup with INCONSISTENT_GROUP_PROTOCOL, and a commit
        with GROUP_ID_NOT_FOUND. Of an empty consumer or streams group it makes a classic one, which keeps its committed
        offsets (GroupMetadataManager.classicGroupJoin), and it takes commits without a generation for it.
        """
        return self.kind == "share"


_WITHOUT_MEMBERS: Final = ("Empty", "Dead", "")


class AdoptStatus(Enum):
    """What became of an attempt to adopt a group."""

    ADOPTED = "adopted"
    ALREADY = "already here"
    VACANT = "nowhere"
    LIVE = "live at the cluster"
    SHARE = "share group at the cluster"
    BUSY = "comes and goes"

    @property
    def may_be_served(self) -> bool:
        """Whether the group may be served here, one that is nowhere for a moment."""
        return self not in (AdoptStatus.LIVE, AdoptStatus.SHARE, AdoptStatus.BUSY)


class GiveBackStatus(Enum):
    """What became of an attempt to give a group back."""

    GIVEN = "given back"
    NOTHING = "nothing here"
    LIVE_HERE = "live here"
    LIVE_THERE = "live at the cluster"
    SHARE_THERE = "share group at the cluster"
    REFUSED = "refused by the cluster"
    BUSY = "goes on committing"


class GiveBackReadiness(Enum):
    """What a coordinator says to being asked whether a group could go."""

    READY = "it has no members"
    UNKNOWN = "there is nothing of it here"
    LIVE = "it has members"


class GiveBackAnswer(Enum):
    """What a coordinator says to being asked to let a group go."""

    GONE = "mark and offsets are gone, durably"
    CHANGED = "its offsets are others by now"
    UNKNOWN = "it has no mark (any more)"
    LIVE = "it has members"


class OwnershipMarker(NamedTuple):
    """What a coordinator says of a group, once that is durable."""

    is_adopted: bool
    is_vacant: bool = False
    """Whether it was nowhere a moment ago."""
    epoch: int = 0
    """How often groups of its partition have gone from here to the cluster."""
    asked_ms: int = 0
    """When this was said, by the coordinator's clock."""


class ClusterReading(NamedTuple):
    """What was read of the cluster about one group."""

    offsets: Offsets
    mark: OwnershipMarker
    """What the coordinator has said before."""
    is_unknown: bool = False
    """Whether the cluster knows nothing of the group."""


class StoreResult(Enum):
    """What a coordinator has done with what was read."""

    TAKEN = "offsets and mark are here, durably"
    THERE = "the mark was there"
    VACANT = "the group is nowhere"
    STALE = "what was read may be too old"


class AdoptionTarget(Protocol):
    """What moving a group in asks of its coordinator here. Its methods raise when it cannot be asked."""

    async def mark(self, group: GroupId) -> OwnershipMarker:
        """How it is with the group here."""

    async def adopt(self, group: GroupId, reading: ClusterReading) -> StoreResult:
        """Store offsets and mark in one turn, unless the mark is there or what was read is too old."""


class LocalCoordinator(AdoptionTarget, Protocol):
    """The coordinator of groups here. Its methods raise when it cannot be asked; nothing is swallowed."""

    async def may_leave(self, group: GroupId) -> GiveBackReadiness:
        """Whether the group could go to the cluster now. Changes nothing."""

    async def close(self, group: GroupId) -> GiveBackReadiness:
        """As `may_leave`; one that is READY takes no changes from clients for some seconds from now."""

    async def reopen(self, group: GroupId) -> None:
        """Let clients change the group again. Never raises: else it opens by itself."""

    async def offsets(self, group: GroupId) -> Offsets:
        """All offsets that the group has here; only asked of one that could go."""

    async def give_back(self, group: GroupId, offsets: Offsets) -> GiveBackAnswer:
        """Remove mark and offsets in one turn if the offsets are exactly these and the group has no members."""


class ClusterCoordinator(Protocol):
    """The groups that the cluster coordinates (`UpstreamGroups`). Its methods raise UpstreamError."""

    async def state(self, group: GroupId) -> ClusterGroupState:
        """What the group is there."""

    async def settled(self, group: GroupId) -> None:
        """Return once no transaction under way has offsets of it."""

    async def committed(self, group: GroupId) -> Offsets:
        """All stable offsets that it has there."""

    async def would_refuse(self, group: GroupId, offsets: Offsets) -> Mapping[TopicPartition, int]:
        """Return the error codes of partitions that `commit` would refuse, as far as that shows without writing."""

    async def commit(self, group: GroupId, offsets: Offsets) -> Mapping[TopicPartition, int]:
        """Commit for a group without members; return the error codes of partitions that were refused."""

    async def remove(self, group: GroupId, places: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Delete offsets of a group without members; return the error codes of partitions that were refused."""


@dataclass(frozen=True, slots=True)
class AdoptResult:
    """What was done for one group, or would be: `offsets` are those of the cluster."""

    group: GroupId
    outcome: AdoptStatus
    offsets: Offsets = field(default_factory=dict)
    state: ClusterGroupState | None = None
    """What the group is at the cluster; None where it was not asked."""


@dataclass(frozen=True, slots=True)
class GiveBackResult:
    """What was done for one group, or would be: `offsets` are those from here, `refused` Kafka's codes for some."""

    group: GroupId
    outcome: GiveBackStatus
    offsets: Offsets = field(default_factory=dict)
    refused: Mapping[TopicPartition, int] = field(default_factory=dict)
    rest: Sequence[TopicPartition] = ()
    """Of what else the cluster has an offset of this group, which counts again."""
    written: Sequence[TopicPartition] = ()
    """Of a group that stays: whose offsets the cluster has taken all the same."""
    state: ClusterGroupState | None = None
    """What the group is at the cluster, where it is for that that it cannot go there."""


async def adopt_group(
    here: AdoptionTarget,
    there: ClusterCoordinator,
    group: GroupId,
    *,
    take_live: bool = False,
    dry_run: bool = False,
) -> AdoptResult:
    """Move a group in, or say what that would do. Raises what the ports raise; then it is not adopted, or not known.

    `take_live` takes a group, too, that has members at the cluster: what they commit there from now on is lost. Of a
    share group nothing comes along, as it has no committed offsets: it goes on there, beside one of that id here.
    """
    for _ in range(ATTEMPTS_MAX):
        result = await _adopt_once(here, there, group, take_live, dry_run)
        if result is not None:
            return result
    return AdoptResult(group, AdoptStatus.BUSY)


async def _adopt_once(
    here: AdoptionTarget, there: ClusterCoordinator, group: GroupId, take_live: bool, dry_run: bool
) -> AdoptResult | None:
    """Move a group in; None where what was read of the cluster is too old by now."""
    mark = await here.mark(group)
    if mark.is_adopted or mark.is_vacant:
        return AdoptResult(group, AdoptStatus.ALREADY if mark.is_adopted else AdoptStatus.VACANT)
    state = await there.state(group)
    stays = None if take_live else _stays_there(state)
    if stays is not None:
        return AdoptResult(group, stays, state=state)
    if state.is_known:
        await there.settled(group)
        mark = await here.mark(group)  # that may have taken long: what is read from now on is new
        if mark.is_adopted:
            return AdoptResult(group, AdoptStatus.ALREADY)
    offsets = await there.committed(group)
    state = await there.state(group)
    stays = None if take_live else _stays_there(state)
    if stays is not None:
        return AdoptResult(group, stays, state=state)
    is_unknown = not offsets and not state.is_known
    if dry_run:
        return AdoptResult(group, AdoptStatus.VACANT if is_unknown else AdoptStatus.ADOPTED, offsets, state)
    outcome = _ADOPTED[await here.adopt(group, ClusterReading(offsets, mark, is_unknown))]
    if outcome is None:
        return None
    return AdoptResult(group, outcome, offsets if outcome is AdoptStatus.ADOPTED else {}, state)


def _stays_there(state: ClusterGroupState) -> AdoptStatus | None:
    if state.is_share:
        return AdoptStatus.SHARE
    return AdoptStatus.LIVE if state.is_live else None


_ADOPTED: Final = {
    StoreResult.TAKEN: AdoptStatus.ADOPTED,
    StoreResult.THERE: AdoptStatus.ALREADY,
    StoreResult.VACANT: AdoptStatus.VACANT,
    StoreResult.STALE: None,
}


async def give_back_group(
    here: LocalCoordinator,
    there: ClusterCoordinator,
    group: GroupId,
    *,
    delete_rest: bool = False,
    dry_run: bool = False,
) -> GiveBackResult:
    """Move a group out, or say what that would do. Raises what the ports raise; then it is still here, or not known.

    A partition that the cluster refuses (a topic that is gone) does not go along; then the group stays here, too.
    `delete_rest` deletes what else the cluster has of it: offsets that were deleted here would count again there, but
    what a consumer that never moved has committed there goes as well.
    """
    giving = _GivingBack(here, there, group, delete_rest)
    if dry_run:
        return await giving.predict()
    try:
        result = await giving.run()
    except GeneratorExit:
        raise  # whoever ran this is gone, and nothing more can be asked
    except BaseException as error:
        if giving.is_writing:
            error.add_note(MAY_BE_WRITTEN)
        await giving.reopen()
        raise
    if result.outcome is not GiveBackStatus.GIVEN:
        await giving.reopen()
    return result


class _GivingBack:
    """One group that is to move out, with what is known of that."""

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
        """Whether anything was sent to the cluster that it may have stored."""

    async def predict(self) -> GiveBackResult:
        """Return what `run` would come to now, and change nothing."""
        stays = await self._stays(await self._here.may_leave(self._group))
        if stays is not None:
            return stays
        rest = () if self._delete_rest else await self._rest()
        return self._result(GiveBackStatus.GIVEN, rest=rest)

    async def run(self) -> GiveBackResult:
        """Write the group's offsets to the cluster, and have the group removed here. Return what came of it."""
        for _ in range(ATTEMPTS_MAX):
            result = await self._once()
            if result is not None:
                return result
        return self._result(GiveBackStatus.BUSY)

    async def _once(self) -> GiveBackResult | None:
        """Write the offsets there and remove them here; None where they have changed meanwhile."""
        here, there, group = self._here, self._there, self._group
        stays = await self._stays(await self._close())
        if stays is not None:
            return stays
        leaving = await self._close()
        if leaving is not GiveBackReadiness.READY:
            return self._result(_STAYS[leaving])
        refused = await self._commit()
        rest = await self._rest()
        if rest and self._delete_rest and not refused:
            refused, rest = await there.remove(group, rest), ()
        if refused:
            return self._result(GiveBackStatus.REFUSED, refused=refused)
        outcome = _OUTCOMES[await here.give_back(group, self._offsets)]
        return None if outcome is None else self._result(outcome, rest=rest)

    async def _close(self) -> GiveBackReadiness:
        self._is_closed = True  # even if the answer is lost
        leaving = await self._here.close(self._group)
        self._is_closed = leaving is GiveBackReadiness.READY
        return leaving

    async def reopen(self) -> None:
        """Let clients change the group again if it was closed."""
        if self._is_closed:
            await self._here.reopen(self._group)

    async def _stays(self, leaving: GiveBackReadiness) -> GiveBackResult | None:
        """What keeps the group from going, of all that shows before anything is written; None where nothing does.

        That are members here, members there, a share group, which takes no offsets, and offsets that are refused.
        """
        if leaving is not GiveBackReadiness.READY:
            return self._result(_STAYS[leaving])
        self._offsets = await self._here.offsets(self._group)
        state = await self._there.state(self._group)
        if state.is_live:
            return self._result(GiveBackStatus.LIVE_THERE, state=state)
        if state.is_share:
            return self._result(GiveBackStatus.SHARE_THERE, state=state)
        refused = await self._there.would_refuse(self._group, self._offsets) if self._offsets else {}
        return self._result(GiveBackStatus.REFUSED, refused=refused) if refused else None

    async def _commit(self) -> Mapping[TopicPartition, int]:
        """Write the offsets there; what was refused."""
        if not self._offsets:
            return {}
        self.is_writing = True
        refused = await self._there.commit(self._group, self._offsets)
        self._written |= self._offsets.keys() - refused.keys()
        return refused

    async def _rest(self) -> Sequence[TopicPartition]:
        return tuple(sorted(set(await self._there.committed(self._group)) - set(self._offsets)))

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


_STAYS: Final = {
    GiveBackReadiness.LIVE: GiveBackStatus.LIVE_HERE,
    GiveBackReadiness.UNKNOWN: GiveBackStatus.NOTHING,
}
_OUTCOMES: Final = {
    GiveBackAnswer.GONE: GiveBackStatus.GIVEN,
    GiveBackAnswer.UNKNOWN: GiveBackStatus.NOTHING,
    GiveBackAnswer.LIVE: GiveBackStatus.LIVE_HERE,
    GiveBackAnswer.CHANGED: None,
}
