# SPDX-License-Identifier: Apache-2.0
"""Monitors and Kafka's tools through a gateway: they move no group, and see what is committed now.

Half of the groups have moved here, half are at the cluster. Lists show those that are here; a group at the cluster is
shown when it is asked for by name.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from tests.gateway.monitors import MONITORS, Monitor
from tests.gateway.whole import Whole
from tests.kafka.cluster import KafkaCluster
from tests.kafka.java_shell import JavaShell, Ran
from tests.peers.fetching import NotPublishedError, UnavailableError
from tests.support.missing import skip_or_fail
from tests.support.raw import (
    commit_offsets,
    fetch_offsets,
    find_coordinator,
    list_groups,
    wait_for_coordinator,
)
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(300)]

TOPIC: Final = "watched"
PARTITIONS: Final = range(3)
END: Final = 1_000
"""The end of each partition."""
HERE: Final = [f"here-{number}" for number in range(4)]
THERE: Final = [f"there-{number}" for number in range(4)]
TAKEN_OVER: Final = "a group was taken over"


class Watched:
    """Groups on both sides, and what each has committed: no two offsets are the same."""

    def __init__(self, whole: Whole) -> None:
        self.whole = whole
        self.broker = whole.cluster.address(1)
        self.committed: dict[str, dict[int, int]] = {}
        self._next = 0

    def fill(self) -> None:
        """Commit in all groups at the broker, then in half of them here, which moves these."""
        for group in (*HERE, *THERE):
            wait_for_coordinator(self.broker, group)
            self._commit(self.broker, group)
        for group in HERE:
            self._wait_for_node(group)
            self._commit(self.node_of(group), group)

    def _wait_for_node(self, group: str) -> None:
        wait_until(
            lambda: not find_coordinator(self.whole.bootstrap, group).error_code, what=f"a node for {group}"
        )

    def node_of(self, group: str) -> str:
        """Where a group is coordinated for clients of the gateway."""
        return f"127.0.0.1:{find_coordinator(self.whole.bootstrap, group).port}"

    def commit(self) -> None:
        """Commit in each group where it is."""
        for group in HERE:
            self._commit(self.node_of(group), group)
        for group in THERE:
            self._commit(self.broker, group)

    def _commit(self, address: str, group: str) -> None:
        offsets = {partition: self._next + partition for partition in PARTITIONS}
        self._next += len(PARTITIONS)
        assert self._next < END
        commit_offsets(address, group, TOPIC, offsets)
        self.committed[group] = offsets

    def of(self, *groups: str) -> dict[str, dict[int, int]]:
        """What these have committed."""
        return {group: self.committed[group] for group in groups}

    def check_that_nothing_moved(self) -> None:
        """See commits at the broker through the gateway, and no group here that was not here before."""
        self.commit()
        for group, offsets in self.committed.items():
            found = fetch_offsets(self.node_of(group), group)
            assert found == {(TOPIC, each): offset for each, offset in offsets.items()}, group
        nodes = {self.node_of(group) for group in self.committed}
        assert len(nodes) == 2, "groups of both nodes"
        assert sorted(group for node in nodes for group in list_groups(node)) == HERE
        said = [json.loads(line) for line in self.whole.log_text().splitlines() if TAKEN_OVER in line]
        assert {line["group"] for line in said} == set(HERE)


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """A broker behind two nodes and a gateway."""
    work = tmp_path_factory.mktemp("watched")
    cluster = KafkaCluster(work / "kafka")
    whole = Whole(work / "node", cluster, {"workers": 2, "gateway.workers": 1})
    try:
        cluster.start()
        cluster.create_topic(TOPIC, len(PARTITIONS))
        for partition in PARTITIONS:
            cluster.produce(TOPIC, END, partition=partition)
        whole.start()
        groups = Watched(whole)
        groups.fill()
        yield groups
    finally:
        whole.close()
        cluster.close()


@pytest.fixture
def monitor(watched: Watched, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Monitor]:
    """One that runs; skips where its sources are not at hand."""
    try:
        with MONITORS[request.param](tmp_path, watched.whole.brokers) as running:
            yield running
    except NotPublishedError as error:
        pytest.skip(str(error))
    except UnavailableError as error:
        skip_or_fail(str(error))


def shown(ran: Ran) -> Mapping[str, Mapping[int, int]]:
    """The committed offsets that kafka-consumer-groups.sh shows, once its ends and lags are seen to be right."""
    found: dict[str, dict[int, int]] = {}
    rows = [line.split() for line in ran.output.splitlines()]
    for group, _, partition, offset, end, lag, *_ in (row for row in rows if TOPIC in row):
        assert (int(end), int(lag)) == (END, END - int(offset)), ran
        found.setdefault(group, {})[int(partition)] = int(offset)
    return found


@pytest.mark.parametrize("monitor", MONITORS, indirect=True)
def test_a_monitor_shows_the_groups_that_are_here_and_moves_none(watched: Watched, monitor: Monitor) -> None:
    for _ in range(3):
        shows(monitor, watched.of(*HERE))
        watched.check_that_nothing_moved()


def shows(monitor: Monitor, offsets: Mapping[str, Mapping[int, int]]) -> None:
    """Return once a monitor shows these groups and no other, with these offsets."""
    lags = {group: {each: END - at for each, at in rows.items()} for group, rows in offsets.items()}
    wait_until(
        lambda: monitor.lags(TOPIC) == lags,
        what=lambda: f"{lags}, not {monitor.lags(TOPIC)}:\n{monitor.log_tail()}",
    )
    assert monitor.offsets(TOPIC) in (None, offsets)


def test_kafkas_tool_shows_each_group_by_its_name(watched: Watched, java_shell: JavaShell) -> None:
    for group in watched.committed:
        ran = java_shell.groups(watched.whole.brokers, "--describe", "--group", group)
        assert shown(ran) == watched.of(group), ran
        state = java_shell.groups(watched.whole.brokers, "--describe", "--group", group, "--state")
        (row,) = state.table()
        assert (row["GROUP"], row["STATE"], row["#MEMBERS"]) == (group, "Empty", "0")
    watched.check_that_nothing_moved()


def test_kafkas_tool_shows_groups_of_both_sides_that_are_named_together(
    watched: Watched, java_shell: JavaShell
) -> None:
    names = [word for group in watched.committed for word in ("--group", group)]
    ran = java_shell.groups(watched.whole.brokers, "--describe", *names)
    assert shown(ran) == watched.committed, ran
    watched.check_that_nothing_moved()


def test_kafkas_tool_lists_the_groups_that_are_here(watched: Watched, java_shell: JavaShell) -> None:
    listed = java_shell.groups(watched.whole.brokers, "--list")
    assert sorted(listed.output.split()) == HERE, listed
    ran = java_shell.groups(watched.whole.brokers, "--describe", "--all-groups")
    assert shown(ran) == watched.of(*HERE), ran
    watched.check_that_nothing_moved()


def test_kafkas_tool_shows_where_partitions_end(watched: Watched, java_shell: JavaShell) -> None:
    ran = java_shell.run("ends", "--bootstrap-server", watched.whole.brokers, "--topic", TOPIC)
    assert ran.output.split() == [f"{TOPIC}:{partition}:{END}" for partition in PARTITIONS], ran
    watched.check_that_nothing_moved()
