# SPDX-License-Identifier: Apache-2.0
"""A gateway that takes a group over from its cluster and gives it back, again and again, while others use the group.

The cluster is imagined: whenever the group is there, it has offsets that were never seen before.
"""

from collections.abc import Mapping
from typing import Any

from coordinator.api.private import adopt_group, close_group, give_back_group
from coordinator.migration.private_requests import CloseGroupStep
from coordinator.partitions.group_adoption import CLOSED_MS
from coordinator.partitions.shard import Shard
from protocol.errors import ErrorCode
from protocol.newtypes import GroupId
from tests.simulation.client import ONLY_ASKED, all_keys
from tests.simulation.committers import Committer
from tests.simulation.history import NOTHING, Broken, Key, Write
from tests.simulation.settings import TOPIC

NOT_GIVEN = frozenset(
    {ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.NON_EMPTY_GROUP, ErrorCode.GROUP_ID_NOT_FOUND}
)
CLOSES_SHARE = 0.7
"""How many groups are closed before they are given back."""
WATCHES_SHARE = 0.5
DIES_SHARE = 0.1
"""How many of those that give back die between the two."""
WAITS = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    }
)


class Mover(Committer):
    """Uses the group, wherever that is."""

    pause_s = 4.0

    async def take_in(self) -> None:
        """The cluster has it."""


class Adopter(Committer):
    """Moves one group to and fro, and deletes it where it is here."""

    pause_s = 1.5

    async def _one(self) -> None:
        mark = await self.ask_private(adopt_group.API, ONLY_ASKED)
        if mark.error_code:
            await self.pause(0.2)
        elif not mark.adopted or self.rng.random() < 0.3:
            await self._take_over(mark)
        elif self.rng.random() < 0.3:
            await self._give_back()
        elif self.rng.random() < 0.2:
            await self._delete_group()

    async def _take_over(self, mark: Any) -> None:
        """As a gateway does that has read the cluster since it heard `mark`."""
        writes = self.world.history.begin_commit(all_keys(self.group)[: self.rng.randint(1, 6)])
        kind = adopt_group.API.schema.request.AdoptedTopic
        values = {key: write.value for key, write in writes.items()}
        offsets = _rows(kind, kind.AdoptedPartition, values)
        self._promised[self._correlation + 1] = list(writes.values())
        heard = {"epoch": mark.epoch, "asked_ms": mark.asked_ms}
        answer = await self.ask_private(adopt_group.API, {**heard, "unknown": False, "offsets": offsets})
        error = ErrorCode(answer.error_code)
        if error is ErrorCode.NONE and answer.taken >= 0:
            if mark.adopted:
                raise Broken("a group is taken over once", f"{self.group}: {answer.taken} offsets again")
            self._taken(writes)
        elif error in (ErrorCode.NONE, ErrorCode.FENCED_LEADER_EPOCH):
            for write in writes.values():
                self.world.history.refused(write)
        elif error not in WAITS:
            raise Broken("errors are those that the state allows", f"{self.name} got {error.name}")

    def _taken(self, writes: Mapping[Key, Write]) -> None:
        self.world.history.counts["adoptions"] += 1
        for key, write in writes.items():
            if write.value in self._early:
                raise Broken("nothing is answered before it is durable", f"{self.name}: {key}")
            self.world.history.acknowledged(key, write)

    async def _give_back(self) -> None:
        """Close the group and give it back; now and then without that, as if that had been long ago, or die then."""
        closes = self.rng.random() < CLOSES_SHARE
        began, shard = self.world.loop.time(), self._shard()
        if closes and await self._step(CloseGroupStep.CLOSE) is not ErrorCode.NONE:
            return
        values: dict[Key, int] = {}
        if await self.fetch(into=values) is not ErrorCode.NONE:
            return
        if closes and self.rng.random() < WATCHES_SHARE:
            await self._watch(values, began, shard)
        if self.rng.random() < DIES_SHARE:
            return
        if await self._take_away(values) is not ErrorCode.NONE and closes:
            await self._step(CloseGroupStep.REOPEN)

    async def _step(self, step: CloseGroupStep) -> ErrorCode:
        error = ErrorCode((await self.ask_private(close_group.API, {"step": step})).error_code)
        if error is ErrorCode.NONE:
            self.world.history.counts[f"to {step.name.lower()} a group"] += 1
        elif error not in NOT_GIVEN and error not in WAITS:
            raise Broken("errors are those that the state allows", f"{self.name} got {error.name}")
        return error

    def _shard(self) -> Shard | None:
        """Where the group is kept now: another one after its partition was loaded anew."""
        for node in self.world.nodes:
            kept = None if node.app is None else node.app.manager.find(GroupId(self.group))
            if kept is not None:
                return kept.shard
        return None

    async def _watch(self, values: Mapping[Key, int], began: float, shard: Shard | None) -> None:
        """Nobody changes what is closed, but what is too old goes."""
        await self.pause(0.5)
        again: dict[Key, int] = {}
        if await self.fetch(into=again) is not ErrorCode.NONE:
            return
        if self.world.loop.time() - began >= CLOSED_MS / 1000 or shard is None or self._shard() is not shard:
            return
        for key, value in again.items():
            if value not in (values[key], NOTHING):
                raise Broken("what is closed takes no commits", f"{self.name}: {key}: {value}")

    async def _take_away(self, values: Mapping[Key, int]) -> ErrorCode:
        """What the group has was written to the cluster: it is the cluster's, unless it has changed since."""
        writes = {key: self.world.history.begin(key, NOTHING) for key in values}
        kind = give_back_group.API.schema.request.GivenTopic
        there = {key: value for key, value in values.items() if value != NOTHING}
        answer = await self.ask_private(
            give_back_group.API, {"offsets": _rows(kind, kind.GivenPartition, there)}
        )
        error = ErrorCode(answer.error_code)
        if error is ErrorCode.NONE:
            self.world.history.counts["given back"] += 1
        elif error not in NOT_GIVEN and error not in WAITS:
            raise Broken("errors are those that the state allows", f"{self.name} got {error.name}")
        for key, write in writes.items():
            if error is ErrorCode.NONE:
                self.world.history.acknowledged(key, write)
            elif error in NOT_GIVEN:
                self.world.history.refused(write)
        return error


def _rows(topic: Any, partition: Any, values: Mapping[Key, int]) -> list[Any]:
    rows = [
        partition(
            version=0,
            partition_index=index,
            committed_offset=value,
            committed_leader_epoch=-1,
            committed_metadata="",
        )
        for (_, _, index), value in values.items()
    ]
    return [topic(version=0, topic=TOPIC, partitions=rows)] if rows else []
