# SPDX-License-Identifier: Apache-2.0
"""A day of a team that moves its groups to a gateway before three brokers, and half of them back.

Members restart one by one at the gateway, while others of their group are still at the cluster; monitors look at
everything; a process of the gateway, a worker and a broker are killed. No committed offset moves back, no group has
members in two places, every record is read, and what was only looked at has not moved.
"""

import json
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Final

import pytest

from tests.gateway.day import Ledger, Member, Monitor, looking
from tests.gateway.whole import Whole
from tests.kafka.cluster import KafkaCluster
from tests.support.command import groupkeeper
from tests.support.raw import commit_offsets, fetch_offsets, find_coordinator, list_groups
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(900)]

TOPIC: Final = "day"
PARTITIONS: Final = 4
GROUPS: Final = {
    "team-0": "confluent-kafka",
    "team-1": "kafka-python",
    "team-2": "aiokafka",
    "team-3": "confluent-kafka",
    "team-4": "kafka-python",
    "team-5": "confluent-kafka",
}
GO_BACK: Final = ("team-1", "team-2", "team-3")
LOOKED_AT: Final = tuple(f"looked-at-{number}" for number in range(3))
LOST: Final = 3
"""The broker that dies."""
STAYS: Final = "a group has members at the cluster, and stays there until they are gone"
TAKEN_OVER: Final = "a group was taken over"
WORKERS: Final = 2


@contextmanager
def _trying_again() -> Iterator[None]:
    """An error code that is not expected is one on which clients try again: a partition is being loaded, say."""
    try:
        yield
    except AssertionError as error:
        raise OSError(str(error)) from error


def _listed(address: str) -> dict[str, str]:
    with _trying_again():
        return list_groups(address)


class Day:
    """The cluster, the gateway, the members of all groups, and who looks at them."""

    def __init__(self, whole: Whole) -> None:
        self.whole = whole
        self.cluster = whole.cluster
        self.ledger = Ledger()
        self.members: dict[str, list[Member]] = {}
        self._produced = 0
        self._commits = 0
        self.looks = 0
        """How often all groups were looked at, and found to be in one place at most."""

    # --- what members do ---

    def join(self, group: str, bootstrap: str) -> Member:
        """Start a member at the cluster, or at the gateway."""
        member = Member(GROUPS[group], bootstrap, group, TOPIC, self.ledger)
        self.members.setdefault(group, []).append(member)
        return member

    def restart(self, group: str, bootstrap: str) -> Member:
        """The oldest member of a group leaves, and another one joins at this address."""
        self.members[group].pop(0).close()
        return self.join(group, bootstrap)

    def goes_on(self, *groups: str) -> None:
        """Wait until each of the groups has read what is written now, and committed that."""
        self.cluster.produce(TOPIC, 40, first=self._produced)
        self._produced += 40
        ends = self.cluster.ends(TOPIC)
        for group in groups:
            wait_until(
                partial(self._has_committed, group, ends),
                what=lambda: f"the last commits of a group:\n{self.whole.log_text()[-3000:]}",
            )

    def _has_committed(self, group: str, offsets: Mapping[int, int]) -> bool:
        return self.ledger.committed(group) == offsets

    def moves_in(self, group: str) -> None:
        """Its members restart at the gateway, the second one only once the first one waits for it."""
        waits = self._lines(STAYS, group)
        self.restart(group, self.whole.brokers)
        wait_until(
            # It is not refused where a busy machine has cost the other member its session at the cluster.
            lambda: self._lines(STAYS, group) > waits or self._lines(TAKEN_OVER, group),
            what=lambda: f"the first member of {group} to be refused:\n{self.whole.log_text()[-6000:]}",
        )
        self.restart(group, self.whole.brokers)
        self.goes_on(group)
        assert self._lines(TAKEN_OVER, group) == 1

    def moves_back(self, group: str) -> None:
        """Its members stop, it is given back, and they start at the cluster."""
        for member in self.members.pop(group):
            member.close()
        done = groupkeeper(
            "give-back", "--execute", "--group", group, "--data-dir", self.whole.data_dir, *self._settings()
        )
        assert done.returncode == 0, done.stdout + done.stderr
        for _ in range(2):
            self.join(group, self.cluster.bootstrap())
        self.goes_on(group)

    def _settings(self) -> list[str]:
        return [f"--set={key}={value}" for key, value in self.whole.settings.items()]

    def _lines(self, event: str, group: str) -> int:
        return sum(entry.get("group") == group for entry in self._entries(event))

    def _entries(self, event: str) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.whole.log_text().splitlines() if f'"{event}"' in line]

    # --- what dies ---

    def kill(self, event: str) -> None:
        """Kill the process that such a line of the log names last."""
        pid = self._entries(event)[-1]["pid"]
        assert isinstance(pid, int)
        os.kill(pid, signal.SIGKILL)

    # --- who looks ---

    @contextmanager
    def monitored(self) -> Iterator[Monitor]:
        """Ask through the gateway for all groups and their offsets meanwhile."""
        monitor = Monitor(self.whole.brokers, (*GROUPS, *LOOKED_AT))
        try:
            yield monitor
        finally:
            monitor.close()

    def watch(self) -> None:
        """See that no group has members in two places, and that no committed offset has moved back."""
        before = self._active_at_cluster()
        here = self._active_here()
        both = before & here & self._active_at_cluster()
        assert not both, f"{both} have members in two places"
        for group in GROUPS:
            acknowledged = self.ledger.committed(group)
            found = self._offsets(group)
            behind = {p: offset for p, offset in acknowledged.items() if found.get(p, 0) < offset}
            assert not behind, f"{group}: {found} after {acknowledged}"
        self.looks += 1

    def _active_at_cluster(self) -> set[str]:
        found: set[str] = set()
        for node_id, broker in self.cluster.brokers.items():
            if broker.runs:
                found |= active(_listed(self.cluster.address(node_id)))
        return found

    def _active_here(self) -> set[str]:
        """Each of our nodes lists what is here."""
        return set().union(*(active(_listed(address)) for address in self.nodes))

    @property
    def nodes(self) -> list[str]:
        """Our nodes, as clients find them."""
        return [f"127.0.0.1:{self.whole.port + number}" for number in range(WORKERS)]

    def _offsets(self, group: str) -> Mapping[int, int]:
        """What clients of the gateway read; of a group that is not here what the cluster has."""
        with _trying_again():
            offsets = fetch_offsets(coordinator(self.whole.brokers, group), group)
        return {partition: offset for (_, partition), offset in offsets.items()}

    def commit_where_it_is(self) -> None:
        """What is only looked at goes on at the cluster."""
        self._commits += 1
        offsets = dict.fromkeys(range(PARTITIONS), self._commits)
        for group in LOOKED_AT:
            wait_until(partial(self._commits_at_cluster, group, offsets), what=f"a commit of {group}")

    def _commits_at_cluster(self, group: str, offsets: Mapping[int, int]) -> bool:
        with suppress(OSError, AssertionError):  # the coordinator is to be elected, or loads
            commit_offsets(coordinator(self.cluster.bootstrap(), group), group, TOPIC, offsets)
            return True
        return False

    def check_what_was_looked_at(self) -> None:
        """It is at the cluster alone, and each commit there can be seen here."""
        self.commit_where_it_is()
        here = {group for address in self.nodes for group in list_groups(address)}
        assert here == set(GROUPS) - set(GO_BACK)
        for group in LOOKED_AT:
            wait_until(partial(self._shows_the_last_commit, group), what=f"the last commit of {group}")
            assert not self._lines(TAKEN_OVER, group)

    def _shows_the_last_commit(self, group: str) -> bool:
        return set(self._offsets(group).values()) == {self._commits}

    def close(self) -> None:
        for member in [member for members in self.members.values() for member in members]:
            member.close()


def coordinator(brokers: str, group: str) -> str:
    """Where these brokers say that a group is coordinated. Raises OSError while it cannot be said."""
    found = find_coordinator(brokers.partition(",")[0], group)
    if found.error_code:
        raise OSError(f"error {found.error_code}")
    return f"{found.host}:{found.port}"


def active(states: Mapping[str, str]) -> set[str]:
    """Groups that have members."""
    return {group for group, state in states.items() if state not in {"Empty", "Dead"}}


@pytest.fixture
def day(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Day]:
    """Three brokers behind two nodes and a gateway."""
    work = tmp_path_factory.mktemp("day")
    cluster = KafkaCluster(work / "kafka", 3, settings={"group.initial.rebalance.delay.ms": 0})
    whole = Whole(work / "node", cluster, {"workers": WORKERS, "gateway.workers": 1})
    with ExitStack() as stack:
        stack.callback(cluster.close)
        stack.callback(whole.close)
        cluster.start()
        cluster.create_topic(TOPIC, PARTITIONS)
        cluster.wait_until_in_sync()
        whole.start()
        day = Day(whole)
        stack.callback(day.close)
        yield day


def test_a_day_of_a_team_that_moves(day: Day) -> None:
    at_cluster = day.cluster.bootstrap()
    for group in GROUPS:
        for _ in range(2):
            day.join(group, at_cluster)
    day.commit_where_it_is()
    day.goes_on(*GROUPS)
    with day.monitored() as monitor, looking(day.watch) as watchers:
        wait_until(lambda: day.looks or watchers, what="a first look")
        first, second, third, *others = GROUPS
        day.moves_in(first)
        day.moves_in(second)
        day.kill("started a gateway")
        day.goes_on(*GROUPS)
        day.moves_in(third)
        day.kill("started a worker")
        day.goes_on(*GROUPS)
        day.cluster.kill9(LOST)
        for group in others:
            day.moves_in(group)
        day.cluster.restart(LOST)
        day.cluster.wait_until_in_sync()
        day.goes_on(*GROUPS)
        for group in GO_BACK:
            day.moves_back(group)
        day.goes_on(*GROUPS)
        looks = day.looks
        wait_until(lambda: day.looks > looks or watchers, what="a last look")
    assert not watchers
    assert monitor.polls
    assert not day.ledger.went_back
    for group in GROUPS:
        assert not day.ledger.missing(group, day.cluster.ends(TOPIC)), group
    day.check_what_was_looked_at()
