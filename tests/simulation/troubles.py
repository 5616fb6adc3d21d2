# SPDX-License-Identifier: Apache-2.0
"""What goes wrong around a node: its process, its disk, its clock, and what it leads."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

from protocol.newtypes import GroupId
from protocol.placement import partition_for
from tests.simulation.loop import NS
from tests.simulation.node import Body, SimulatedNode
from tests.storage.faulty import Fault

if TYPE_CHECKING:
    from tests.simulation.world import World

EVERY_S = 12.0
PAUSES_S = (0.5, 3.0, 20.0)
UPKEEP = ("create", "fsync", "fsync_dir", "mkdir", "remove", "rename")
UPKEEP_S = 10.0
SLOW = 200.0
"""By how much everything takes longer on a slow disk."""
MOVES_SLOWLY_S = 1.0
LAST_SHARE = 0.5
LAST_S = 5.0
"""How many worlds end with a disk that takes nothing for so long."""
JUMPS_MS = (-3_600_000, -5_000, 5_000, 3_600_000)


class Troubles:
    """One trouble after the other, each for a node that serves."""

    every_s = EVERY_S

    def __init__(self, world: "World") -> None:
        self._world = world
        self._rng = world.rng
        self.over = False

    def _kinds(self) -> list[Callable[[SimulatedNode], Awaitable[None]]]:
        """What may happen; what is there twice happens more often."""
        return [
            self._crash,
            self._crash_in_an_operation,
            self._crash_in_upkeep,
            self._crash_in_upkeep,
            self._fail_an_operation,
            self._fail_an_operation,
            self._slow_disk,
            self._disk_takes_nothing,
            self._stop_cleanly,
            self._pause,
            self._hold,
            self._jump,
            self._move,
            self._move,
            self._lose_sectors,
            self._drain,
        ]

    async def run(self) -> None:
        """Make trouble until it is `over`."""
        troubles = self._kinds()
        while not self.over:
            await self._rest(self._rng.expovariate(1 / self.every_s))
            up = [node for node in self._world.nodes if node.is_up]
            if up and not self.over:
                node = self._rng.choice(up)
                await self._rng.choice(troubles)(node)
        if self._rng.random() < LAST_SHARE and self._world.host.bodies():
            # Nothing that comes later makes this good by a new start.
            await self._disk_takes_nothing_for(LAST_S)

    async def _rest(self, seconds: float) -> None:
        """Make no trouble for so long, or until all trouble is over: the calm after the last one has its length."""
        until = self._world.loop.time() + seconds
        while not self.over and (left := until - self._world.loop.time()) > 0:  # noqa: ASYNC110 - costs nothing
            await asyncio.sleep(min(1.0, left))

    def _any_partition(self) -> int:
        return self._rng.randrange(self._world.settings.offsets_topic_num_partitions)

    def move_slowly(self, group: str) -> None:
        """Let a group's partition be led anew, on a disk that is slow meanwhile."""
        if not self.over:
            self._world.slowness.factor = SLOW
            self._world.later(MOVES_SLOWLY_S, self._quick_again)
            self._world.host.move(self._partition_of(group))

    def _quick_again(self) -> None:
        self._world.slowness.factor = 1.0

    def _partition_of(self, group: str) -> int:
        return partition_for(GroupId(group), self._world.settings.offsets_topic_num_partitions)

    def stop_leader(self, group: str) -> None:
        """Let the worker that leads a group's partition stand still until its supervisor kills it."""
        partition = self._partition_of(group)
        for node in self._world.nodes:
            leads = node.app is not None and partition in node.app.manager.owned_partitions
            if leads and node.is_up and not (self.over or self._world.is_alone):
                self._world.note(f"{node.name} stands still while a topic is deleted")
                node.pause(PAUSES_S[-1])

    def crash_leader(self, group: str) -> None:
        """Let the node that leads a group's partition end now."""
        partition = self._partition_of(group)
        for node in self._world.nodes:
            leads = node.app is not None and partition in node.app.manager.owned_partitions
            if leads and node.body is not None and not self.over:
                self._crash_if_alive(node.body)

    def crash_within(self, seconds: float) -> None:
        """Let the node that is alone, or the supervisor, end at some moment soon."""
        bodies = self._world.host.bodies()
        if bodies and not self.over:
            self._world.later(self._rng.random() * seconds, partial(self._crash_if_alive, bodies[0]))

    def _crash_if_alive(self, body: Body) -> None:
        if body.process.is_alive and not self.over:
            body.crashed()

    def _body(self) -> Body:
        """Any process, a supervisor's as well."""
        return self._rng.choice(self._world.host.bodies())

    async def _crash(self, _: SimulatedNode) -> None:
        self._body().crashed()

    async def _crash_in_an_operation(self, _: SimulatedNode) -> None:
        body, after = self._body(), self._rng.randrange(60)
        self._world.note(f"{body.name} will crash in operation {after}")
        body.disk.fail(Fault.CRASH, after)

    async def _crash_in_upkeep(self, _: SimulatedNode) -> None:
        """End in one of the operations that are rare, and make names and segments durable."""
        body, name = self._body(), self._rng.choice(UPKEEP)
        after = self._rng.randrange(3)
        self._world.note(f"{body.name} will crash in {name} {after}")
        self._world.slowness.factor = 20.0
        body.disk.fail(Fault.CRASH, after, only=name)
        until = self._world.loop.time() + UPKEEP_S
        while body.process.is_alive and self._world.loop.time() < until and not self.over:  # noqa: ASYNC110
            await asyncio.sleep(0.5)
        body.disk.fail_at = None
        self._world.slowness.factor = 1.0

    async def _fail_an_operation(self, _: SimulatedNode) -> None:
        fault = self._rng.choice([Fault.FULL, Fault.IO_ERROR])
        body, after = self._body(), self._rng.randrange(60)
        self._world.note(f"{body.name}: {fault.name} in operation {after}")
        body.disk.fail(fault, after)

    async def _slow_disk(self, _: SimulatedNode) -> None:
        self._world.note("the disk is slow")
        self._world.slowness.factor = SLOW
        await asyncio.sleep(3)
        self._world.slowness.factor = 1.0

    async def _disk_takes_nothing(self, _: SimulatedNode) -> None:
        await self._disk_takes_nothing_for(self._rng.choice([1.0, 5.0, 20.0]))

    async def _disk_takes_nothing_for(self, seconds: float) -> None:
        disk, full = self._world.disk, self._rng.random() < 0.5
        self._world.note(f"the disk {'is full' if full else 'fails'} for {seconds} s")
        disk.take_nothing(full=full)
        await asyncio.sleep(seconds)
        disk.work_again()
        self._world.disk_good_since = self._world.loop.time()
        self._world.note("the disk works again")

    async def _stop_cleanly(self, node: SimulatedNode) -> None:
        self._world.note(f"{node.name} is to stop")
        self._world.host.stop(node)

    async def _pause(self, node: SimulatedNode) -> None:
        seconds = self._rng.choice(PAUSES_S)
        self._world.note(f"{node.name} stands still for {seconds} s")
        node.pause(seconds)

    async def _hold(self, _: SimulatedNode) -> None:
        seconds = self._rng.choice(PAUSES_S)
        self._world.note(f"nothing runs for {seconds} s")
        self._world.loop.hold(int(seconds * NS))
        self._world.stood_still()

    async def _jump(self, _: SimulatedNode) -> None:
        jump_ms = self._rng.choice(JUMPS_MS)
        self._world.note(f"the wall clock jumps by {jump_ms} ms")
        self._world.clock.jump(jump_ms)

    async def _move(self, _: SimulatedNode) -> None:
        """Lead a partition anew while something is under way."""
        self._world.slowness.factor = 100.0
        await asyncio.sleep(0.5)
        self._world.slowness.factor = 1.0
        self._world.host.move(self._any_partition())

    async def _lose_sectors(self, _: SimulatedNode) -> None:
        """One partition cannot be read for a while, just when it is to be led anew; everything else works."""
        partition, seconds = self._any_partition(), self._rng.choice([1.0, 5.0, 20.0])
        self._world.note(f"partition {partition} cannot be read for {seconds} s")
        self._world.disk.lose_sectors(f"__consumer_offsets-{partition}/")
        self._world.host.move(partition)
        await asyncio.sleep(seconds)
        self._world.disk.work_again()
        self._world.disk_good_since = self._world.loop.time()
        self._world.note(f"partition {partition} can be read again")

    async def _drain(self, node: SimulatedNode) -> None:
        """Let a worker lead nothing any more, and end; its supervisor does not start it again."""
        self._world.host.drain(node)
