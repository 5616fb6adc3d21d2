# SPDX-License-Identifier: Apache-2.0
"""Assigns the partitions of `__consumer_offsets` to nodes: a state machine without I/O.

A partition has at most one *owner*, the node that may have its log open. A `LeadOrder` makes a node the owner, under
an epoch that was never used before; the partition has no owner again only after that node has released it, or after
the node's process has ended and its journal has been settled. The caller must have the epochs on disk before it
sends a `LeadOrder`, and must be certain that a process has ended before it calls `record_worker_death`.

Most methods change the state; then `assign_leaders` returns the orders that follow, and takes them for sent.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from coordinator.topology.view import NO_NODE, Leader
from protocol.newtypes import LeaderEpoch, Partition


class LeadOrder(NamedTuple):
    """An order to `node` to lead a partition."""

    node: int
    partition: Partition
    epoch: LeaderEpoch


class ResignOrder(NamedTuple):
    """An order to `node` to release a partition that it leads under this epoch."""

    node: int
    partition: Partition
    epoch: LeaderEpoch


Command = LeadOrder | ResignOrder


class OrderRefused(ValueError):
    """An order that cannot be carried out; the text says why, for the operator who gave it."""


class AssignedPartition(msgspec.Struct):
    """The state of one partition."""

    epoch: LeaderEpoch
    """The highest epoch that a node was given."""
    owner: int | None = None
    leads: bool = False
    """True if the owner was ordered to lead the partition, and not to release it since."""
    target: int | None = None
    """The node that is to lead the partition; None if that is the owner, or any node."""
    failed: bool = False
    """True if no node may have the partition, because its log is damaged."""

    @property
    def leader(self) -> int | None:
        """The node that was ordered to lead the partition, None if none is to lead it now."""
        return self.owner if self.leads else None


class Assignment:
    """The partitions, and the nodes by their state."""

    def __init__(self, last: Sequence[Leader], nodes: Iterable[int]) -> None:
        """`last` holds each partition's last leader and the highest epoch that was ever used, -1 for none.

        `nodes` are expected to come up. Partitions are spread over them evenly, and keep their last leaders as
        far as that is even.
        """
        self.places = [AssignedPartition(leader.epoch) for leader in last]
        self.expected: set[int] = set(nodes)
        """Nodes that are starting, or starting again: partitions that are meant for them wait."""
        self.up: set[int] = set()
        self.draining: set[int] = set()
        self._spread({Partition(number): leader.node_id for number, leader in enumerate(last)})

    # --- what happens

    def note_node_serving(self, node: int) -> None:
        """Note that a node serves; one that was given up before gets its share of the partitions again."""
        self.expected.discard(node)
        self.up.add(node)
        if not any(node in (place.owner, place.target) for place in self.places):
            self._spread({partition: self._wanted(place) for partition, place in self._numbered()})

    def record_release(self, node: int, partition: Partition, epoch: LeaderEpoch) -> bool:
        """Note that a node has released a partition; return False, changing nothing, unless it was ordered to."""
        place = self.places[partition]
        if node not in self.up or (place.owner, place.epoch) != (node, epoch) or place.leads:
            return False
        place.owner = None
        return True

    def record_worker_death(self, node: int) -> list[Partition]:
        """Note that a node's process has ended; return its partitions.

        The node stays their owner until `free_lost_node_partitions`.
        """
        self.up.discard(node)
        self.expected.discard(node)
        had = [partition for partition, place in self._numbered() if place.owner == node]
        for partition in had:
            self.places[partition].leads = False
        return had

    def free_lost_node_partitions(self, node: int, *, failed: Collection[int], comes_back: bool) -> None:
        """Free the partitions of a lost node once its journal is settled.

        They wait for the node if it comes back; otherwise, or if they have another target, they go to other nodes.
        """
        if comes_back and node not in self.draining:
            self.expected.add(node)
        for partition, place in self._numbered():
            if place.owner == node:
                place.owner = None
                place.failed = partition in failed
                if place.target is None and node in self.expected:
                    place.target = node

    # --- what operators want

    def _numbered(self) -> Iterator[tuple[Partition, AssignedPartition]]:
        return ((Partition(number), place) for number, place in enumerate(self.places))

    def move(self, partition: Partition, to: int) -> None:
        """Let another node lead a partition. Raises OrderRefused if that cannot be done."""
        if not 0 <= partition < len(self.places):
            raise OrderRefused(f"there is no partition {partition}: they are 0 to {len(self.places) - 1}")
        if to in self.draining:
            raise OrderRefused(f"node {to} is being drained")
        if to not in self.up:
            raise OrderRefused(
                f"node {to} does not serve; those that do are {_listed(self.up - self.draining)}"
            )
        place = self.places[partition]
        if place.failed:
            raise OrderRefused(f"partition {partition} is damaged, so no node can lead it")
        place.target = to

    def drain(self, node: int) -> None:
        """Take all partitions from a node. Raises OrderRefused if the node does not serve, or no other node does."""
        others = self.up - self.draining - {node}
        if node not in self.up:
            raise OrderRefused(
                f"node {node} does not serve; those that do are {_listed(self.up - self.draining)}"
            )
        if not others:
            raise OrderRefused(
                f"node {node} is the last one that serves: no other node can take its partitions"
            )
        self.draining.add(node)

    def is_node_without_partitions(self, node: int) -> bool:
        """Return whether a node owns no partition."""
        return all(place.owner != node for place in self.places)

    def record_drained_node_exit(self, node: int) -> None:
        """Note that a drained node has ended, so that it is like any other if it is started again."""
        self.draining.discard(node)

    # --- what follows

    def assign_leaders(self) -> list[Command]:
        """Return the orders that follow from the state, and assign their epochs."""
        given: list[Command] = []
        loads = self._loads()
        for partition, place in self._numbered():
            if place.failed:
                continue
            self._retarget(place)
            if place.owner is None:
                node = self._choose(place, loads)
                if node is not None:
                    place.epoch = LeaderEpoch(place.epoch + 1)
                    place.owner, place.leads, place.target = node, True, None
                    loads[node] += 1
                    given.append(LeadOrder(node, partition, place.epoch))
            elif place.leads and (place.target is not None or place.owner in self.draining):
                place.leads = False
                given.append(ResignOrder(place.owner, partition, place.epoch))
        return given

    def leaders(self) -> list[Leader]:
        """Return the leader of each partition, -1 for none, and its epoch."""
        return [
            Leader(NO_NODE if place.leader is None else place.leader, place.epoch) for place in self.places
        ]

    def leaders_to_store(self) -> list[Leader]:
        """Return what is to be on disk: the node that has, or is to have, each partition, and the highest epoch."""
        return [Leader(self._wanted(place), place.epoch) for place in self.places]

    def _wanted(self, place: AssignedPartition) -> int:
        node = place.target if place.target is not None else place.owner
        return NO_NODE if node is None else node

    def _retarget(self, place: AssignedPartition) -> None:
        """Forget a target that leads the partition already, or that is draining or gone."""
        if place.target is None:
            return
        there = place.leads and place.target == place.owner
        if there or place.target in self.draining or place.target not in self.up | self.expected:
            place.target = None

    def _choose(self, place: AssignedPartition, loads: Mapping[int, int]) -> int | None:
        if place.target is not None:
            return place.target if place.target in self.up else None
        if not loads:
            return None
        return min(loads, key=lambda node: (loads[node], node))

    def _loads(self) -> dict[int, int]:
        """Return the number of partitions that each node has or is meant to have, of the nodes that can take more."""
        loads = dict.fromkeys(self.up - self.draining, 0)
        for place in self.places:
            node = self._wanted(place)
            if node in loads:
                loads[node] += 1
        return loads

    def _spread(self, last: Mapping[Partition, int]) -> None:
        """Set a target for each partition, so that no two nodes differ by more than one partition."""
        nodes = sorted((self.up | self.expected) - self.draining)
        if not nodes:
            return
        partitions = [partition for partition, place in self._numbered() if not place.failed]
        least, more = divmod(len(partitions), len(nodes))
        counts = dict.fromkeys(nodes, 0)
        homeless = []
        for partition in partitions:
            node = last[partition]
            allowed = least + (sum(count > least for count in counts.values()) < more)
            if node in counts and counts[node] < allowed:
                counts[node] += 1
                self._set_target(partition, node)
            else:
                homeless.append(partition)
        for partition in homeless:
            node = min(nodes, key=lambda each: (counts[each], each))
            counts[node] += 1
            self._set_target(partition, node)

    def _set_target(self, partition: Partition, node: int) -> None:
        place = self.places[partition]
        place.target = None if place.owner == node and place.leads else node


def _listed(nodes: Collection[int]) -> str:
    return ", ".join(map(str, sorted(nodes))) or "none"
