# SPDX-License-Identifier: Apache-2.0
"""Groups move in and out, with any number of movers at once that may be stopped at any step: no offset goes back.

A group that is about to move out is closed by its mover; it opens when it cannot go, and by itself, at any moment, as
for a mover that is dead or asleep, or since its partition moved.

What the model does not do, since no order of steps could stand it: a client does not join at the cluster while the
group is being moved in, which ends for those that were asleep meanwhile once it has moved out again; and of those that
move it out there is one at a time, for which the command holds a lock.
"""

import random
import types
from collections.abc import Callable, Coroutine, Generator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import pytest

from coordinator.cluster_requests.model import ClusterGroupState, Offsets, TopicPartition, TransferredOffset
from coordinator.migration.model import (
    CHANGED,
    STALE,
    AdoptStatus,
    ClusterReading,
    GiveBackResult,
    GiveBackStatus,
    Ownership,
)
from coordinator.migration.protocol import ATTEMPTS_MAX, MAY_BE_WRITTEN, adopt_group, give_back_group
from protocol.errors import ErrorCode
from protocol.newtypes import GroupId

T = TypeVar("T")
GROUP = GroupId("g")
PLACES = (TopicPartition("t", 0), TopicPartition("t", 1))


@types.coroutine
def turn() -> Generator[None, None, None]:
    """Somebody else may go on, or this one may be stopped here for good."""
    yield


@dataclass
class World:
    """One group at the cluster and here; every question is two turns: its effect, and its answer."""

    there: dict[TopicPartition, TransferredOffset] = field(default_factory=dict)
    here: dict[TopicPartition, TransferredOffset] = field(default_factory=dict)
    marked: bool = False
    confirmed_absent: bool = False
    epoch: int = 0
    members_there: int = 0
    kind_there: str = "classic"
    members_here: int = 0
    refused: dict[TopicPartition, int] = field(default_factory=dict)
    refused_late: dict[TopicPartition, int] = field(default_factory=dict)
    """What shows only when it is written."""
    closed: bool = False
    writes: int = 0

    # --- the port to the coordinator ---

    async def find_ownership(self, group: GroupId) -> Ownership:
        return await self._asked(
            lambda: Ownership(ErrorCode.NONE, self.marked, self.confirmed_absent, self.epoch)
        )

    async def check_give_back(self, group: GroupId) -> ErrorCode:
        return await self._asked(self._leaving)

    async def close_for_give_back(self, group: GroupId) -> ErrorCode:
        def close() -> ErrorCode:
            leaving = self._leaving()
            self.closed = self.closed or leaving is ErrorCode.NONE
            return leaving

        return await self._asked(close)

    async def reopen_group(self, group: GroupId) -> None:
        def reopen() -> None:
            self.closed = False

        await self._asked(reopen)

    def _leaving(self) -> ErrorCode:
        if not self.marked and not self.here:
            return ErrorCode.GROUP_ID_NOT_FOUND
        return ErrorCode.NON_EMPTY_GROUP if self.members_here else ErrorCode.NONE

    async def adopt(self, group: GroupId, reading: ClusterReading) -> Ownership:
        def store() -> Ownership:
            if self.marked:
                return Ownership(is_adopted=True)
            if reading.epoch != self.epoch:
                return Ownership(STALE)
            if reading.is_unknown and not self.here:
                self.confirmed_absent = True
                return Ownership(is_confirmed_absent=True)
            self.marked, self.confirmed_absent = True, False
            self.here = self.here or dict(reading.offsets)
            return Ownership(is_adopted=True, taken=len(self.here))

        return await self._asked(store)

    async def fetch_all_offsets(self, group: GroupId) -> Offsets:
        return await self._asked(lambda: dict(self.here))

    async def remove_group_if_unchanged(self, group: GroupId, offsets: Offsets) -> ErrorCode:
        def remove() -> ErrorCode:
            if not self.marked and not self.here:
                return ErrorCode.GROUP_ID_NOT_FOUND
            if self.members_here:
                return ErrorCode.NON_EMPTY_GROUP
            if self.here != offsets:
                return CHANGED
            self.marked, self.here, self.closed = False, {}, False
            self.epoch += 1
            return ErrorCode.NONE

        return await self._asked(remove)

    # --- the port to the cluster ---

    async def fetch_group_state(self, group: GroupId) -> ClusterGroupState:
        return await self._asked(
            lambda: (
                ClusterGroupState(
                    self.kind_there, "Stable" if self.members_there else "Empty", self.members_there
                )
                if self.members_there or self.there or self.kind_there == "share"
                else ClusterGroupState.none()
            )
        )

    async def wait_for_open_transactions(self, group: GroupId) -> None:
        pass

    async def fetch_committed_offsets(self, group: GroupId) -> Offsets:
        return await self._asked(lambda: dict(self.there))

    async def predict_commit_errors(self, group: GroupId, offsets: Offsets) -> dict[TopicPartition, int]:
        return await self._asked(
            lambda: {place: self.refused[place] for place in offsets if place in self.refused}
        )

    async def commit(self, group: GroupId, offsets: Offsets) -> dict[TopicPartition, int]:
        def store() -> dict[TopicPartition, int]:
            self.writes += 1
            refused = self.refused | self.refused_late
            self.there |= {place: offset for place, offset in offsets.items() if place not in refused}
            return {place: refused[place] for place in offsets if place in refused}

        return await self._asked(store)

    async def delete_offsets(
        self, group: GroupId, places: Sequence[TopicPartition]
    ) -> dict[TopicPartition, int]:
        def forget() -> dict[TopicPartition, int]:
            for place in places:
                if place not in self.refused:
                    self.there.pop(place, None)
            return {place: self.refused[place] for place in places if place in self.refused}

        return await self._asked(forget)

    async def _asked(self, effect: Callable[[], T]) -> T:
        await turn()
        answer = effect()
        await turn()
        return answer


def finish(coroutine: Coroutine[Any, Any, Any], meanwhile: Callable[[int], None] = lambda _: None) -> Any:
    """Run one mover to its end; `meanwhile` is called before each of its turns."""
    for number in range(1_000):
        meanwhile(number)
        try:
            coroutine.send(None)
        except StopIteration as done:
            return done.value
    raise AssertionError("it does not end")


class Play:
    """Clients that commit here or there, and movers, in any order; `truth` is what was acknowledged to clients."""

    def __init__(self) -> None:
        self.world = World()
        self.truth: dict[TopicPartition, TransferredOffset] = {}
        self.adopting: list[Coroutine[Any, Any, Any]] = []
        self.heard: dict[Coroutine[Any, Any, Any], int] = {}
        """What the epoch was when a mover has last asked for it, or a turn before."""
        self.giving: list[Coroutine[Any, Any, Any]] = []
        self.moved_in = self.moved_out = self.begun = 0
        self.turned_away = self.overtaken = self.stayed = 0
        """Clients that met a closed group; those that met one that had opened under its mover; groups that stayed."""
        self.written_before = 0
        """How often something was written to the cluster when the one that gives back began."""
        self.has_opened = False
        """Whether the group has opened by itself since then."""

    def act(self, action: str, number: int) -> None:
        getattr(self, action)(number)
        self.check()

    def check(self) -> None:
        world = self.world
        holds = world.here if world.marked else world.there
        assert not world.confirmed_absent or holds == {}, "nowhere"
        assert not (world.closed and world.members_here), "nobody is in what is closed"
        assert holds == self.truth, f"clients would read {holds}, and have committed {self.truth}"

    def join_there(self, _: int) -> None:
        """Movers that are asleep since the group was last here do not matter, others look once more."""
        world = self.world
        if not (world.marked or self._is_awake() or self.giving):
            world.members_there, world.confirmed_absent = 1, False

    def _is_awake(self) -> bool:
        """Whether somebody may have read what is to be stored."""
        return any(epoch == self.world.epoch for epoch in self.heard.values())

    def commit_there(self, number: int) -> None:
        if self.world.members_there:
            self._commit(self.world.there, number)

    def leave_there(self, _: int) -> None:
        self.world.members_there = 0

    def join_here(self, _: int) -> None:
        self._begin()
        if self._takes_changes():
            self.world.members_here = 1

    def commit_here(self, number: int) -> None:
        """A member, or a consumer that is none."""
        self._begin()
        if self._takes_changes():
            self._commit(self.world.here, number)

    def delete_here(self, number: int) -> None:
        """One offset, or the group."""
        if self._takes_changes():
            for place in PLACES[number % 2 :]:
                self.world.here.pop(place, None)
                self.truth.pop(place, None)

    def _takes_changes(self) -> bool:
        """Whether the group is here, and open."""
        self.turned_away += self.world.closed
        self.overtaken += bool(self.giving) and self.has_opened
        return self.world.marked and not self.world.closed

    def opens(self, _: int) -> None:
        """So long ago was its mover's last request, or its partition has another leader."""
        self.has_opened = self.has_opened or self.world.closed
        self.world.closed = False

    def _begin(self) -> None:
        """What is nowhere begins here."""
        if self.world.confirmed_absent:
            self.world.marked, self.world.confirmed_absent = True, False
            self.begun += 1

    def expire(self, _: int) -> None:
        """All that was committed is too old, here and there, and so is the mark."""
        world = self.world
        is_read = not world.marked and self._is_awake()
        if not (is_read or world.members_here or world.members_there or self.giving):
            self.truth, world.here, world.there = {}, {}, {}
            world.closed = False  # long since
            if world.marked:
                world.marked = False
                world.epoch += 1

    def leave_here(self, _: int) -> None:
        self.world.members_here = 0

    def start_adopting(self, _: int) -> None:
        if len(self.adopting) < 3:
            self.adopting.append(adopt_group(self.world, self.world, GROUP))

    def start_giving(self, _: int) -> None:
        if not self.giving:
            self.giving.append(give_back_group(self.world, self.world, GROUP, delete_rest=True))
            self.written_before, self.has_opened = self.world.writes, False

    def step(self, number: int) -> None:
        for movers in (self.adopting, self.giving):
            if movers:
                mover = movers[number % len(movers)]
                before = self.heard.get(mover, self.world.epoch)
                if movers is self.adopting:
                    self.heard[mover] = self.world.epoch
                try:
                    mover.send(None)
                except StopIteration as done:
                    movers.remove(mover)
                    self.heard.pop(mover, None)
                    self._moved(done.value.outcome, before)
                    if movers is self.giving:
                        self._check_left(done.value)

    def kill(self, number: int) -> None:
        for movers in (self.adopting, self.giving):
            if movers:
                mover = movers.pop(number % len(movers))
                self.heard.pop(mover, None)
                mover.close()

    def _moved(self, outcome: AdoptStatus | GiveBackStatus, epoch: int) -> None:
        """What is said was done is done, until the next mover comes; `epoch` was when the answer left."""
        if outcome in (AdoptStatus.ADOPTED, AdoptStatus.ALREADY):
            assert self.world.marked or self.world.epoch > epoch, outcome
            self.moved_in += outcome is AdoptStatus.ADOPTED
        elif outcome in (GiveBackStatus.GIVEN, GiveBackStatus.NOTHING):
            assert not self.world.marked or self.adopting or self.begun, outcome
            self.moved_out += outcome is GiveBackStatus.GIVEN

    def _check_left(self, result: GiveBackResult) -> None:
        """One that could not go is open, and the cluster has what it says, which is nothing if it stayed closed."""
        if result.outcome is GiveBackStatus.GIVEN:
            return
        self.stayed += 1
        assert not self.world.closed, result
        assert bool(result.written) == (self.world.writes > self.written_before), result
        assert self.has_opened or not result.written, result

    def end(self) -> None:
        for mover in (*self.adopting, *self.giving):
            mover.close()

    def _commit(self, where: dict[TopicPartition, TransferredOffset], number: int) -> None:
        place = PLACES[number % 2]
        before = self.truth.get(place, TransferredOffset(0)).offset
        where[place] = self.truth[place] = TransferredOffset(before + 1, -1, f"commit {before + 1}")


ACTIONS = [
    *("join_there", "commit_there", "leave_there", "join_here", "commit_here", "leave_here", "leave_here"),
    *("start_adopting", "start_adopting", "start_giving", "kill", "expire", "delete_here", "opens"),
    *["step"] * 20,
]
PLAYS = 200
TURNS = 1_000


@pytest.mark.parametrize("act", range(4))
def test_no_offset_goes_back_whoever_moves_a_group_and_is_stopped(act: int) -> None:
    moved_in = moved_out = begun = turned_away = overtaken = stayed = 0
    for seed in range(act * PLAYS, (act + 1) * PLAYS):
        chance, play = random.Random(seed), Play()
        for _ in range(TURNS):
            play.act(chance.choice(ACTIONS), chance.randrange(6))
        play.end()
        moved_in += play.moved_in
        moved_out += play.moved_out
        begun += play.begun
        turned_away += play.turned_away
        overtaken += play.overtaken
        stayed += play.stayed
        finish(adopt_group(play.world, play.world, GROUP))
        assert not play.world.marked or play.world.here == play.truth, seed
    assert moved_in > PLAYS, "the plays have to be about something"
    assert moved_out > PLAYS // 2, "the plays have to be about something"
    for count in (begun, turned_away, overtaken, stayed):
        assert count > PLAYS // 2, "the plays have to be about something"


@pytest.mark.parametrize("stopped_after", range(14))
def test_an_adoption_that_is_stopped_anywhere_is_done_by_the_next(stopped_after: int) -> None:
    world = World(there={PLACES[0]: TransferredOffset(5, 2, "m")})
    first = adopt_group(world, world, GROUP)
    for _ in range(stopped_after):
        try:
            first.send(None)
        except StopIteration:
            break
    first.close()
    result = finish(adopt_group(world, world, GROUP))
    assert result.outcome.may_be_served
    assert world.here == {PLACES[0]: TransferredOffset(5, 2, "m")}


def test_a_group_that_is_here_is_not_asked_of_the_cluster() -> None:
    world = World(
        there={PLACES[0]: TransferredOffset(5)}, here={PLACES[0]: TransferredOffset(9)}, marked=True
    )
    result = finish(adopt_group(world, world, GROUP))
    assert (result.outcome, result.state) == (AdoptStatus.ALREADY, None)
    assert world.here == {PLACES[0]: TransferredOffset(9)}


@pytest.mark.parametrize("kind", ["classic", "consumer", "streams"])
def test_a_live_group_stays_unless_it_is_taken_all_the_same(kind: str) -> None:
    world = World(there={PLACES[0]: TransferredOffset(5)}, members_there=1, kind_there=kind)
    result = finish(adopt_group(world, world, GROUP))
    assert (result.outcome, result.state) == (AdoptStatus.LIVE, ClusterGroupState(kind, "Stable", 1))
    assert not world.marked
    assert finish(adopt_group(world, world, GROUP, take_live=True)).outcome is AdoptStatus.ADOPTED
    assert world.here == {PLACES[0]: TransferredOffset(5)}


@pytest.mark.parametrize("members", [0, 1])
def test_a_share_group_stays_with_members_or_without_unless_it_is_taken_all_the_same(members: int) -> None:
    world = World(members_there=members, kind_there="share")
    result = finish(adopt_group(world, world, GROUP))
    assert (result.outcome, result.outcome.may_be_served) == (AdoptStatus.SHARE, False)
    assert not world.marked
    assert not world.confirmed_absent
    assert finish(adopt_group(world, world, GROUP, take_live=True)).outcome is AdoptStatus.ADOPTED
    assert world.marked


def test_an_empty_streams_group_moves_in_as_a_broker_makes_it_a_classic_one() -> None:
    world = World(there={PLACES[0]: TransferredOffset(5)}, kind_there="streams")
    assert finish(adopt_group(world, world, GROUP)).outcome is AdoptStatus.ADOPTED
    assert world.here == {PLACES[0]: TransferredOffset(5)}


def test_a_consumer_that_joins_while_the_offsets_are_read_keeps_the_group_there() -> None:
    world = World(there={PLACES[0]: TransferredOffset(5)})

    def join(number: int) -> None:
        if number == 6:  # the offsets were read
            world.members_there = 1

    assert finish(adopt_group(world, world, GROUP), join).outcome is AdoptStatus.LIVE
    assert not world.marked


def test_a_dry_run_changes_nothing() -> None:
    world = World(there={PLACES[0]: TransferredOffset(5)})
    result = finish(adopt_group(world, world, GROUP, dry_run=True))
    assert (result.outcome, result.offsets) == (AdoptStatus.ADOPTED, {PLACES[0]: TransferredOffset(5)})
    assert world == World(there={PLACES[0]: TransferredOffset(5)})

    world = World(here={PLACES[0]: TransferredOffset(5)}, marked=True)
    result = finish(give_back_group(world, world, GROUP, dry_run=True))
    assert (result.outcome, result.offsets) == (
        GiveBackStatus.GIVEN,
        {PLACES[0]: TransferredOffset(5)},
    )
    assert world == World(here={PLACES[0]: TransferredOffset(5)}, marked=True)


def test_offsets_that_change_while_they_are_given_back_go_along() -> None:
    world = World(here={PLACES[0]: TransferredOffset(5)}, marked=True)

    def commit(_: int) -> None:
        if world.writes == 1 and world.closed:  # it opens, as its mover was asleep
            world.closed, world.here = False, {PLACES[0]: TransferredOffset(6)}

    result = finish(give_back_group(world, world, GROUP), commit)
    assert (result.outcome, result.offsets) == (
        GiveBackStatus.GIVEN,
        {PLACES[0]: TransferredOffset(6)},
    )
    assert (world.there, world.here, world.marked) == ({PLACES[0]: TransferredOffset(6)}, {}, False)
    assert world.writes == 2


def test_a_group_is_closed_while_its_offsets_are_read_and_written() -> None:
    world = World(here={PLACES[0]: TransferredOffset(5)}, marked=True)
    seen: list[tuple[bool, int, bool]] = []
    finish(
        give_back_group(world, world, GROUP),
        lambda _: seen.append((world.closed, world.writes, world.marked)),
    )
    assert {closed for closed, writes, marked in seen if writes and marked} == {True}
    opened = [closed for closed, _, _ in seen].index(True)
    assert {closed for closed, _, marked in seen[opened:] if marked} == {True}


def test_a_group_that_goes_on_committing_stays() -> None:
    world = World(here={PLACES[0]: TransferredOffset(0)}, marked=True)

    def commit(number: int) -> None:
        world.here = {PLACES[0]: TransferredOffset(number)}

    assert finish(give_back_group(world, world, GROUP), commit).outcome is GiveBackStatus.BUSY
    assert world.writes == ATTEMPTS_MAX
    assert (world.marked, world.closed) == (True, False)


@pytest.mark.parametrize("dry_run", [False, True])
def test_nothing_is_written_for_a_group_with_members_here(dry_run: bool) -> None:
    world = World(here={PLACES[0]: TransferredOffset(5)}, marked=True, members_here=1)
    before = deepcopy(world)
    assert finish(give_back_group(world, world, GROUP, dry_run=dry_run)).outcome is GiveBackStatus.LIVE_HERE
    assert world == before


def opens_when(world: World, is_time: Callable[[], bool]) -> Callable[[int], None]:
    """Somebody joins here as soon as it is time, if the group has been closed: it opens for that."""

    def join(_: int) -> None:
        if world.closed and is_time():
            world.closed, world.members_here = False, 1

    return join


def test_nothing_is_written_for_a_group_that_has_members_again_before_that() -> None:
    """What the cluster was asked took so long."""
    world = World(here={PLACES[0]: TransferredOffset(5)}, marked=True)
    result = finish(give_back_group(world, world, GROUP), opens_when(world, lambda: True))
    assert (result.outcome, result.written) == (GiveBackStatus.LIVE_HERE, ())
    assert (world.writes, world.there, world.marked) == (0, {}, True)


def test_what_was_written_for_a_group_that_has_members_again_after_that_is_named() -> None:
    world = World(here={PLACES[0]: TransferredOffset(5)}, marked=True)
    result = finish(give_back_group(world, world, GROUP), opens_when(world, lambda: world.writes > 0))
    assert (result.outcome, result.written) == (GiveBackStatus.LIVE_HERE, PLACES[:1])
    assert (world.there, world.here, world.marked) == (
        {PLACES[0]: TransferredOffset(5)},
        {PLACES[0]: TransferredOffset(5)},
        True,
    )


@dataclass
class Failing(World):
    """The cluster goes away at one question; what was asked may have had its effect."""

    fails: str = ""

    async def _asked(self, effect: Callable[[], T]) -> T:
        answer = await super()._asked(effect)
        if self.fails and self.fails in effect.__qualname__:
            raise ConnectionError(self.fails)
        return answer


@pytest.mark.parametrize(
    ("fails", "writes"),
    [
        ("World.fetch_group_state", 0),
        ("predict_commit_errors", 0),
        ("World.commit.", 1),
        ("World.fetch_committed_offsets", 1),
    ],
)
def test_a_group_is_open_again_when_the_cluster_goes_away(fails: str, writes: int) -> None:
    world = Failing(here={PLACES[0]: TransferredOffset(5)}, marked=True, fails=fails)
    with pytest.raises(ConnectionError) as raised:
        finish(give_back_group(world, world, GROUP))
    assert (world.closed, world.marked, world.writes) == (False, True, writes)
    assert getattr(raised.value, "__notes__", []) == [MAY_BE_WRITTEN] * writes


@pytest.mark.parametrize("asked_before", range(24))
def test_a_give_back_that_is_stopped_anywhere_is_done_by_the_next(asked_before: int) -> None:
    """The group is closed, or not; and other offsets are committed once it has opened, or not."""
    for opens in (False, True):
        world = World(here={PLACES[0]: TransferredOffset(5)}, marked=True)
        first = give_back_group(world, world, GROUP)
        for _ in range(asked_before):
            try:
                first.send(None)
            except StopIteration:
                break
        first.close()
        if opens and world.marked:
            world.closed, world.here = (
                False,
                {PLACES[0]: TransferredOffset(6), PLACES[1]: TransferredOffset(1)},
            )
        wanted = world.here or world.there
        result = finish(give_back_group(world, world, GROUP))
        assert result.outcome is (
            GiveBackStatus.GIVEN if world.epoch == 1 and result.offsets else GiveBackStatus.NOTHING
        )
        assert (world.there, world.here, world.marked, world.closed) == (wanted, {}, False, False)


CODE = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
SITUATIONS = [
    World(
        there=dict.fromkeys(there, TransferredOffset(3)),
        here=dict.fromkeys(here, TransferredOffset(5)),
        marked=marked,
        members_there=members_there,
        kind_there=kind,
        members_here=members_here,
        refused=dict.fromkeys(refused, CODE),
    )
    for there in ((), PLACES)
    for here in ((), PLACES[:1], PLACES)
    for marked in (False, True)
    for members_there in (0, 1)
    for kind in ("classic", "consumer", "streams", "share")
    for members_here in ((0, 1) if marked or here else (0,))
    for refused in ((), PLACES[1:])
]


@pytest.mark.parametrize("delete_rest", [False, True])
def test_a_dry_run_says_what_comes_of_it_in_every_situation(delete_rest: bool) -> None:
    outcomes = set()
    for world in map(deepcopy, SITUATIONS):
        before = deepcopy(world)
        said = finish(give_back_group(world, world, GROUP, delete_rest=delete_rest, dry_run=True))
        assert world == before, "it changes nothing"
        if delete_rest and world.refused:  # that deleting is refused shows only when it is done
            world.refused = {place: code for place, code in world.refused.items() if place in world.here}
        done = finish(give_back_group(world, world, GROUP, delete_rest=delete_rest))
        assert said == done, before
        if done.outcome is not GiveBackStatus.GIVEN:
            assert replace(world, refused=before.refused) == before, "nothing is written, and it is open"
        outcomes.add(done.outcome)
    assert outcomes == set(GiveBackStatus) - {GiveBackStatus.BUSY}


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize(
    ("kind", "members", "outcome"),
    [
        *((kind, 1, GiveBackStatus.LIVE_THERE) for kind in ("classic", "consumer", "streams", "share")),
        ("share", 0, GiveBackStatus.SHARE_THERE),
    ],
)
def test_a_group_is_not_given_back_to_a_live_one_of_any_kind_or_a_share_group(
    kind: str, members: int, outcome: GiveBackStatus, dry_run: bool
) -> None:
    world = World(here={PLACES[0]: TransferredOffset(5)}, marked=True, members_there=members, kind_there=kind)
    result = finish(give_back_group(world, world, GROUP, dry_run=dry_run))
    assert (result.outcome, result.offsets) == (outcome, {PLACES[0]: TransferredOffset(5)})
    assert (result.state.kind, result.state.members) == (kind, members)
    assert (world.there, world.here, world.marked) == ({}, {PLACES[0]: TransferredOffset(5)}, True)


def test_what_the_cluster_refuses_keeps_the_group_here() -> None:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    world = World(
        here={place: TransferredOffset(5) for place in PLACES}, marked=True, refused={PLACES[1]: code}
    )
    result = finish(give_back_group(world, world, GROUP))
    assert (result.outcome, result.refused, result.written) == (
        GiveBackStatus.REFUSED,
        {PLACES[1]: code},
        (),
    )
    assert (world.marked, world.closed, world.there) == (True, False, {})


def test_what_the_cluster_took_and_what_it_refused_are_both_named() -> None:
    code = ErrorCode.OFFSET_METADATA_TOO_LARGE
    world = World(
        here={place: TransferredOffset(5) for place in PLACES}, marked=True, refused_late={PLACES[1]: code}
    )
    result = finish(give_back_group(world, world, GROUP))
    assert (result.outcome, result.refused) == (GiveBackStatus.REFUSED, {PLACES[1]: code})
    assert result.written == PLACES[:1]
    assert (world.marked, world.closed, world.there) == (True, False, {PLACES[0]: TransferredOffset(5)})


def test_a_group_that_came_without_the_cluster_can_be_given_to_it() -> None:
    world = World(here={PLACES[0]: TransferredOffset(5)})
    assert finish(give_back_group(world, world, GROUP)).outcome is GiveBackStatus.GIVEN
    assert (world.there, world.here, world.marked) == ({PLACES[0]: TransferredOffset(5)}, {}, False)


def test_there_is_nothing_to_give_back_of_a_group_that_is_not_here() -> None:
    assert finish(give_back_group(World(), World(), GROUP)).outcome is GiveBackStatus.NOTHING


def test_what_was_deleted_here_is_named_and_deleted_at_the_cluster_if_that_is_asked_for() -> None:
    def world() -> World:
        return World(
            there={place: TransferredOffset(5) for place in PLACES},
            here={PLACES[0]: TransferredOffset(9)},
            marked=True,
        )

    kept, deleted = world(), world()
    result = finish(give_back_group(kept, kept, GROUP))
    assert (result.outcome, result.rest) == (GiveBackStatus.GIVEN, PLACES[1:])
    assert kept.there == {PLACES[0]: TransferredOffset(9), **dict.fromkeys(PLACES[1:], TransferredOffset(5))}
    result = finish(give_back_group(deleted, deleted, GROUP, delete_rest=True))
    assert (result.outcome, result.rest) == (GiveBackStatus.GIVEN, ())
    assert deleted.there == {PLACES[0]: TransferredOffset(9)}


def test_a_deletion_that_the_cluster_refuses_keeps_the_group_here() -> None:
    refused: dict[TopicPartition, int] = {PLACES[1]: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC}
    world = World(
        there={PLACES[1]: TransferredOffset(5)},
        here={PLACES[0]: TransferredOffset(9)},
        marked=True,
        refused=refused,
    )
    result = finish(give_back_group(world, world, GROUP, delete_rest=True))
    assert (result.outcome, result.refused) == (GiveBackStatus.REFUSED, refused)
    assert world.marked
