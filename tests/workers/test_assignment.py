# SPDX-License-Identifier: Apache-2.0
"""The assignment as a pure machine, played with a model of nodes that may be slow, die, or come back."""

import random
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.topology.view import NO_NODE, Leader
from coordinator.workers.assignment import Assignment, LeadOrder, OrderRefused, ResignOrder
from protocol.newtypes import LeaderEpoch, Partition

PARTITIONS = 7
NODES = (1, 2, 3, 4)


class Cluster:
    """Nodes that do as they are told, whenever the test lets them; `has` is what each really has open."""

    def __init__(self, last: list[Leader], nodes: int, seed: int) -> None:
        self.rng = random.Random(seed)
        self.machine = Assignment(last, NODES[:nodes])
        self.nodes = NODES[:nodes]
        self.inboxes: dict[int, list[LeadOrder | ResignOrder]] = {}
        self.has: dict[int, dict[int, int]] = {}
        self.dead: dict[int, list[Partition]] = {}
        self.epochs = [leader.epoch for leader in last]
        self.failed: set[int] = set()

    def follow(self) -> None:
        """Take the commands, and see that they keep the rules."""
        for command in self.machine.assign_leaders():
            self.inboxes[command.node].append(command)
            if isinstance(command, LeadOrder):
                assert command.epoch > self.epochs[command.partition], "an epoch was used twice"
                self.epochs[command.partition] = command.epoch
                assert command.partition not in self.failed
        self.check()

    def check(self) -> None:
        """No partition is open at two nodes, counting those who are about to open it, and dead ones unsettled."""
        for partition in range(PARTITIONS):
            holders = [node for node, has in self.has.items() if partition in has]
            holders += [
                node
                for node, inbox in self.inboxes.items()
                if any(isinstance(each, LeadOrder) and each.partition == partition for each in inbox)
                and node not in holders
            ]
            holders += [node for node, had in self.dead.items() if partition in had]
            assert len(holders) <= 1, f"partition {partition} is at {holders}"
            owner = self.machine.places[partition].owner
            assert holders in ([], [owner]), f"partition {partition} is at {holders}, and not at {owner}"

    def come_up(self, node: int) -> None:
        if node not in self.has and node not in self.dead:
            self.has[node], self.inboxes[node] = {}, []
            self.machine.record_drained_node_exit(node)
            self.machine.note_node_serving(node)

    def work(self, node: int) -> None:
        """A node handles its next message."""
        if not self.inboxes.get(node):
            return
        command = self.inboxes[node].pop(0)
        if isinstance(command, LeadOrder):
            self.has[node][command.partition] = command.epoch
        else:
            assert self.has[node].pop(command.partition) == command.epoch
            assert self.machine.record_release(node, command.partition, command.epoch)

    def die(self, node: int) -> None:
        if node in self.has:
            had = set(self.has.pop(node))
            had |= {each.partition for each in self.inboxes.pop(node) if isinstance(each, LeadOrder)}
            told = self.machine.record_worker_death(node)
            assert had <= set(told), "what a dead node had open must be settled"
            self.dead[node] = told

    def settle(self, node: int, *, comes_back: bool, damaged: bool) -> None:
        if node in self.dead:
            had = self.dead.pop(node)
            failed = had[:1] if damaged else []
            self.failed |= set(failed)
            self.machine.free_lost_node_partitions(node, failed=failed, comes_back=comes_back)

    def order(self, name: str, *arguments: int) -> None:
        with suppress(OrderRefused):
            getattr(self.machine, name)(*arguments)

    def rest(self) -> None:
        """Everybody comes up and does what is left to do."""
        for node in self.nodes:
            self.settle(node, comes_back=True, damaged=False)
            self.come_up(node)
        for _ in range(200):
            self.follow()
            for node in self.nodes:
                self.work(node)


node_ids = st.sampled_from(NODES)
steps = st.one_of(
    st.tuples(st.just("come_up"), node_ids),
    st.tuples(st.just("work"), node_ids),
    st.tuples(st.just("work"), node_ids),
    st.tuples(st.just("die"), node_ids),
    st.tuples(st.just("settle"), node_ids, st.booleans(), st.sampled_from([False, False, False, True])),
    st.tuples(st.just("move"), st.integers(-1, PARTITIONS), node_ids),
    st.tuples(st.just("drain"), node_ids),
)
lasts = st.lists(
    st.builds(Leader, st.sampled_from([NO_NODE, *NODES]), st.integers(-1, 5)),
    min_size=PARTITIONS,
    max_size=PARTITIONS,
)


@given(lasts, st.integers(1, 4), st.lists(steps, max_size=80), st.integers(0, 1 << 32))
def test_never_two_owners_ever_new_epochs_and_in_the_end_a_leader_for_each(
    last: list[Leader], nodes: int, life: list[tuple[object, ...]], seed: int
) -> None:
    cluster = Cluster(last, nodes, seed)
    for name, *arguments in life:
        match name, arguments:
            case ("come_up" | "work" | "die") as step, [int(node)] if node in cluster.nodes:
                getattr(cluster, step)(node)
            case "settle", [int(node), bool(comes_back), bool(damaged)]:
                cluster.settle(node, comes_back=comes_back, damaged=damaged)
            case ("move" | "drain") as step, numbers:
                cluster.order(step, *(int(str(number)) for number in numbers))
        cluster.follow()
    cluster.rest()
    for partition, place in enumerate(cluster.machine.places):
        if partition not in cluster.failed:
            assert place.leads, f"{place} is led by nobody: {cluster.machine}"
            assert place.owner in set(cluster.nodes) - cluster.machine.draining
            assert cluster.has[place.owner][partition] == place.epoch


def started(nodes: int, last: list[Leader] | None = None) -> Cluster:
    """A cluster in which everybody has what they should."""
    cluster = Cluster(last or [Leader(NO_NODE, LeaderEpoch(0))] * PARTITIONS, nodes, 0)
    cluster.rest()
    return cluster


def counts(cluster: Cluster) -> list[int]:
    return sorted(len(has) for has in cluster.has.values())


def test_partitions_are_spread_evenly_and_stay_where_they_were() -> None:
    assert counts(started(3)) == [2, 2, 3]
    last = [Leader(2, LeaderEpoch(5))] * 3 + [Leader(1, LeaderEpoch(5))] * 3 + [Leader(9, LeaderEpoch(8))]
    cluster = started(2, last)
    assert set(cluster.has[2]) >= {0, 1, 2}
    assert set(cluster.has[1]) >= {3, 4, 5}
    assert cluster.epochs == [6] * 6 + [9]


def test_the_partitions_of_a_dead_node_wait_for_it_if_it_comes_back() -> None:
    cluster = started(2)
    had = set(cluster.has[1])
    cluster.die(1)
    cluster.follow()
    cluster.settle(1, comes_back=True, damaged=False)
    cluster.follow()
    assert not had & set(cluster.has[2]), "they wait"
    cluster.rest()
    assert set(cluster.has[1]) == had


def test_they_go_to_the_others_when_it_does_not_and_it_gets_a_share_again_later() -> None:
    cluster = started(3)
    cluster.die(1)
    cluster.settle(1, comes_back=False, damaged=False)
    for _ in range(20):
        cluster.follow()
        cluster.work(2)
        cluster.work(3)
    assert counts(cluster) == [3, 4]
    cluster.rest()
    assert counts(cluster) == [2, 2, 3]


def test_a_move_waits_for_the_release_and_back_at_once_comes_under_a_new_epoch() -> None:
    cluster = started(2)
    partition = min(cluster.has[1])
    cluster.machine.move(Partition(partition), 2)
    cluster.follow()
    assert not cluster.inboxes[2], "not before it was released"
    cluster.machine.move(Partition(partition), 1)
    cluster.follow()
    cluster.work(1)  # the resignation
    cluster.follow()
    assert cluster.inboxes[1] == [LeadOrder(1, Partition(partition), LeaderEpoch(2))]
    assert not cluster.inboxes[2]


def test_a_release_that_comes_after_its_node_was_lost_frees_nothing() -> None:
    """Its journal is being settled: a node that got the partition now would write beside that."""
    cluster = started(2)
    partition = min(cluster.has[1])
    cluster.machine.move(Partition(partition), 2)
    cluster.follow()
    epoch = cluster.epochs[partition]
    assert partition in cluster.machine.record_worker_death(1)
    assert not cluster.machine.record_release(1, Partition(partition), epoch)
    assert cluster.machine.assign_leaders() == []


def test_a_drained_node_gives_everything_to_the_others() -> None:
    cluster = started(3)
    cluster.machine.drain(1)
    cluster.rest()
    assert cluster.machine.is_node_without_partitions(1)
    assert counts(cluster) == [0, 3, 4]
    cluster.machine.drain(2)
    with pytest.raises(OrderRefused, match="node 3 is the last one that serves"):
        cluster.machine.drain(3)
    with pytest.raises(OrderRefused, match="node 1 is being drained"):
        cluster.machine.move(Partition(0), 1)


@pytest.mark.parametrize(
    ("partition", "node", "reason"),
    [
        (7, 1, "there is no partition 7: they are 0 to 6"),
        (0, 9, "node 9 does not serve; those that do are 1, 2"),
    ],
)
def test_an_order_that_makes_no_sense_says_why(partition: int, node: int, reason: str) -> None:
    with pytest.raises(OrderRefused, match=reason):
        started(2).machine.move(Partition(partition), node)
