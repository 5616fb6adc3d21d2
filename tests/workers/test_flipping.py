# SPDX-License-Identifier: Apache-2.0
"""Leadership that flips between two workers, over and over, while clients commit.

No acknowledged offset goes back, and every client goes on by itself. FLIPS=N changes how often it flips,
GROUPKEEPER_FLIP_SEED=N repeats the choices of an earlier run.
"""

import asyncio
import os
import random
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError
from confluent_kafka import Consumer, KafkaException
from confluent_kafka import TopicPartition as ConfluentPartition

from tests.support import raw
from tests.support.waiting import wait_until
from tests.workers.nodes import Nodes, group_in
from tests.workers.traffic import TOPIC, Walker, committed

FLIPS = int(os.environ.get("FLIPS") or 100)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(FLIPS + 240)]
FLIPPED = (0, 1, 2)
PATIENCE_S = 120


class Member(threading.Thread, ABC):
    """A client that commits ever higher offsets, over and over until one is accepted, and reads them back."""

    def __init__(self, bootstrap: str, group: str) -> None:
        super().__init__(daemon=True)
        self.bootstrap = bootstrap
        self.group = group
        self.acknowledged = -1
        self.refusals = 0
        self.failure: BaseException | None = None
        self.stopping = threading.Event()

    def run(self) -> None:
        """Work until told to stop."""
        try:
            self.work()
        except BaseException as failure:  # noqa: BLE001 - raised by stop
            self.failure = failure

    @abstractmethod
    def work(self) -> None:
        """Commit and read until told to stop."""

    def saw(self, offset: int) -> None:
        """An offset was read back."""
        assert offset >= self.acknowledged, f"{self.acknowledged} was acknowledged, {offset} is there"

    def stop(self) -> None:
        """End, and raise what went wrong."""
        self.stopping.set()
        self.join(PATIENCE_S)
        assert not self.is_alive(), f"{self} hangs"
        if self.failure is not None:
            raise self.failure


class ConfluentMember(Member):
    """librdkafka: a member of its group, by subscription."""

    def work(self) -> None:
        """See Member."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": self.group,
                "enable.auto.commit": False,
                "session.timeout.ms": 45_000,
                "heartbeat.interval.ms": 200,
            }
        )
        consumer.subscribe([TOPIC])
        place = ConfluentPartition(TOPIC, 0)
        while not self.stopping.is_set() and not consumer.assignment():
            consumer.poll(0.05)
        offset = 0
        while not self.stopping.is_set():
            offset += 1
            self._insist(partial(consumer.commit, offsets=[at_offset(offset)], asynchronous=False))
            if self.stopping.is_set():
                break
            self.acknowledged = offset
            consumer.poll(0)
            seen: Any = self._insist(lambda: consumer.committed([place], timeout=5))
            if seen is not None:
                self.saw(seen[0].offset)
        consumer.close()

    def _insist(self, call: Callable[[], Any]) -> Any:
        while not self.stopping.is_set():
            try:
                return call()
            except KafkaException as error:
                if not (error.args[0].retriable() or error.args[0].name() in PASSING_NAMES):
                    raise
                self.refusals += 1
        return None


PASSING_NAMES = {"COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR"} | {
    "_WAIT_COORD",
    "_TIMED_OUT",
    "_TRANSPORT",
}


def at_offset(offset: int) -> ConfluentPartition:
    return ConfluentPartition(TOPIC, 0, offset)


class AioMember(Member):
    """aiokafka: a member of its group, by subscription."""

    def work(self) -> None:
        """See Member."""
        asyncio.run(self._work())

    async def _work(self) -> None:
        consumer = AIOKafkaConsumer(
            TOPIC,
            bootstrap_servers=self.bootstrap,
            group_id=self.group,
            enable_auto_commit=False,
            session_timeout_ms=45_000,
            heartbeat_interval_ms=200,
        )
        await consumer.start()
        place = TopicPartition(TOPIC, 0)
        offset = 0
        try:
            while not self.stopping.is_set():
                if place not in consumer.assignment():
                    await asyncio.sleep(0.01)
                    continue
                offset += 1
                try:
                    await consumer.commit({place: offset})
                    self.acknowledged = offset
                    seen = await consumer.committed(place)
                    # It takes an OffsetFetch that is refused as a whole, as Kafka does it, for one without offsets.
                    if seen is not None:
                        self.saw(seen)
                except KafkaError as error:
                    if not error.retriable:
                        raise
                    self.refusals += 1
        finally:
            await consumer.stop()


def test_leadership_flips_over_and_over_and_no_acknowledged_offset_goes_back(
    make_nodes: Callable[..., Nodes],
) -> None:
    seed = int(os.environ.get("GROUPKEEPER_FLIP_SEED") or 1)
    sys.stderr.write(f"replay with GROUPKEEPER_FLIP_SEED={seed}\n")
    nodes = make_nodes(2)
    raw.create_topic(nodes.address(1), TOPIC, 1)
    walkers = [Walker(group_in(p), [nodes.address(1), nodes.address(2)]) for p in FLIPPED]
    members: list[Member] = [
        ConfluentMember(nodes.bootstrap, group_in(FLIPPED[0], 1)),
        AioMember(nodes.bootstrap, group_in(FLIPPED[1], 1)),
    ]
    everybody: list[Walker | Member] = [*walkers, *members]
    for each in everybody:
        each.start()
    wait_for_all(everybody, nodes)
    epochs = [state.leader_epoch for state in nodes.look().partitions]
    memberships = [membership(nodes, member.group) for member in members]
    assert all(memberships)

    ordered = flip(nodes, random.Random(seed))
    wait_for_all(everybody, nodes)

    assert memberships == [membership(nodes, member.group) for member in members], "a member had to join anew"
    for each in everybody:
        each.stop()
        assert committed([nodes.address(1), nodes.address(2)], each.group) >= each.acknowledged
    after = [state.leader_epoch for state in nodes.look().partitions]
    led = sum(new - old for old, new in zip(epochs, after, strict=True))
    sys.stderr.write(
        f"{ordered} moves ordered, {led} made; "
        f"{[each.acknowledged for each in everybody]} commits; refused {[m.refusals for m in members]}; "
        f"longest pauses {[round(walker.longest_pause_s, 2) for walker in walkers]} s\n"
    )
    assert led >= FLIPS
    nodes.terminate()


def flip(nodes: Nodes, rng: random.Random) -> int:
    """Move the partitions to and fro; returns how many moves were ordered.

    Of four times that this is ordered three wait until it was done, so that clients may come to the new leader; the
    fourth is followed at once by the way back.
    """
    for number in range(FLIPS):
        wanted = {partition: 1 + (number + partition) % 2 for partition in FLIPPED}
        for partition, node in wanted.items():
            nodes.move(partition, node)
        if rng.random() < 0.75:
            wait_until(partial(are_led, nodes, wanted), PATIENCE_S, what=f"{wanted} to be led")
    return FLIPS * len(FLIPPED)


def are_led(nodes: Nodes, wanted: Mapping[int, int]) -> bool:
    """Whether each of these partitions is served by its node."""
    states = nodes.look().partitions
    return all(
        states[partition].leader == node and states[partition].state == "online"
        for partition, node in wanted.items()
    )


def wait_for_all(everybody: list[Any], nodes: Nodes) -> None:
    """Return once each has had another commit acknowledged."""
    before = {each: each.acknowledged for each in everybody}

    def all_went_on() -> bool:
        failed = [each.failure for each in everybody if each.failure is not None]
        assert not failed, failed
        return all(each.acknowledged > before[each] for each in everybody)

    wait_until(all_went_on, PATIENCE_S, what=lambda: f"commits of all:\n{nodes.log_text()[-6000:]}")


def membership(nodes: Nodes, group: str) -> list[str]:
    """Who is in the group, so that a member that had to join anew shows."""
    for node in (1, 2):
        with raw.RawConnection(nodes.address(node)) as connection:
            (found,) = connection.call(raw.describe(group), 5).groups
        if found.error_code == raw.NONE:
            return sorted(member.member_id for member in found.members)
    return []
