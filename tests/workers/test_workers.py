# SPDX-License-Identifier: Apache-2.0
"""Several workers as real processes: whatever becomes of them, what was acknowledged is there, and clients go on."""

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from urllib.error import HTTPError

import pytest
from playwright.sync_api import expect

from coordinator.catalogue.topic_configs import END_GROUP
from protocol.errors import ErrorCode
from protocol.newtypes import Partition
from tests.offsets.test_reading import Consumer, with_confluent
from tests.support import raw
from tests.support.browser import accessibility_violations, chromium, open_tab
from tests.support.command import groupkeeper
from tests.support.reading import LATEST, OFFSETS_TOPIC, fetch, list_offset
from tests.support.waiting import wait_until
from tests.workers.nodes import PARTITIONS, Nodes, group_in, is_gone
from tests.workers.traffic import TOPIC, Walker, committed

MakeNodes = Callable[..., Nodes]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


def addresses(nodes: Nodes) -> list[str]:
    return [nodes.address(node) for node in range(1, nodes.workers + 1)]


def start_walkers(nodes: Nodes, partitions: range = range(PARTITIONS)) -> list[Walker]:
    """One walker for each partition, all of them under way."""
    raw.create_topic(nodes.address(1), TOPIC, 1)
    walkers = [Walker(group_in(partition), addresses(nodes)) for partition in partitions]
    for walker in walkers:
        walker.start()
    go_on(walkers, nodes)
    return walkers


def go_on(walkers: list[Walker], nodes: Nodes, commits: int = 5) -> None:
    """Return once each has had some more commits acknowledged."""
    before = {walker: walker.acknowledged for walker in walkers}

    def all_went_on() -> bool:
        failed = [walker.failure for walker in walkers if walker.failure is not None]
        assert not failed, failed
        return all(walker.acknowledged >= before[walker] + commits for walker in walkers)

    wait_until(all_went_on, what=lambda: f"commits of {walkers}:\n{nodes.log_text()[-6000:]}")


def finish(walkers: list[Walker], nodes: Nodes) -> None:
    """End the walkers; what they were promised is there, also after a clean stop and a start."""
    for walker in walkers:
        walker.stop()
    compare(walkers, nodes)
    nodes.terminate()
    nodes.start()
    compare(walkers, nodes)


def compare(walkers: list[Walker], nodes: Nodes) -> None:
    for walker in walkers:
        assert committed(addresses(nodes), walker.group) >= walker.acknowledged, walker.group


def test_a_killed_worker_comes_back_with_everything_under_a_higher_epoch(make_nodes: MakeNodes) -> None:
    nodes = make_nodes(2, journal_checkpoint_bytes=65_536)
    walkers = start_walkers(nodes)
    for node in (1, 2, 1):
        before = {each.partition: each for each in nodes.look().partitions if each.leader == node}
        assert before
        pid = nodes.signal(node, signal.SIGKILL)
        nodes.wait_for_replacement(node, pid)
        after = nodes.look().partitions
        assert all(after[p].leader_epoch > before[p].leader_epoch for p in before)
        go_on(walkers, nodes)
    assert [node.restarts for node in nodes.look().nodes] == [2, 1]
    finish(walkers, nodes)


def test_a_stopped_worker_is_ended_before_anybody_gets_what_it_had(make_nodes: MakeNodes) -> None:
    """SIGSTOP, and SIGCONT when its partitions are served elsewhere: it can append nothing any more."""
    nodes = make_nodes(2, worker_timeout_ms=500)
    walkers = start_walkers(nodes)
    pid = nodes.signal(1, signal.SIGSTOP)
    wait_until(lambda: is_gone(pid), what="the end of the stopped worker")
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)
    nodes.wait_for_replacement(1, pid)
    go_on(walkers, nodes)
    finish(walkers, nodes)


def test_a_worker_that_was_stopped_for_a_moment_goes_on_with_what_it_has(make_nodes: MakeNodes) -> None:
    nodes = make_nodes(2, worker_timeout_ms=60_000)
    walkers = start_walkers(nodes)
    epochs = [each.leader_epoch for each in nodes.look().partitions]
    pid = nodes.signal(1, signal.SIGSTOP)
    go_on([w for p, w in enumerate(walkers) if nodes.leader(p) == 2], nodes)
    os.kill(pid, signal.SIGCONT)
    go_on(walkers, nodes)
    assert [each.leader_epoch for each in nodes.look().partitions] == epochs
    finish(walkers, nodes)


def test_the_workers_of_a_killed_supervisor_end_and_the_next_one_serves_all(make_nodes: MakeNodes) -> None:
    nodes = make_nodes(3)
    walkers = start_walkers(nodes)
    epochs = [each.leader_epoch for each in nodes.look().partitions]
    for _ in range(2):
        pids = [nodes.pid(node) for node in (1, 2, 3)]
        nodes.kill9()
        wait_until(lambda pids=pids: all(map(is_gone, pids)), what="the orphans' end")  # type: ignore[misc]
        nodes.start()
        go_on(walkers, nodes)
    after = [each.leader_epoch for each in nodes.look().partitions]
    assert all(new >= old + 2 for old, new in zip(epochs, after, strict=True)), "an epoch was used again"
    finish(walkers, nodes)


def test_a_drained_node_ends_and_clients_go_on(make_nodes: MakeNodes) -> None:
    nodes = make_nodes(3)
    walkers = start_walkers(nodes)
    pid = nodes.pid(2)
    for walker in walkers:
        walker.longest_pause_s = 0.0
    nodes.drain(2)
    wait_until(lambda: [node.node for node in nodes.look().nodes] == [1, 3], what="node 2 to end")
    assert is_gone(pid)
    assert {each.leader for each in nodes.look().partitions} <= {1, 3, -1}
    go_on(walkers, nodes)
    sys.stderr.write(f"longest pauses {[round(walker.longest_pause_s, 2) for walker in walkers]} s\n")
    finish(walkers, nodes)


def test_any_number_of_workers_opens_what_another_left_clean_or_killed(make_nodes: MakeNodes) -> None:
    nodes = make_nodes(1)
    raw.create_topic(nodes.address(1), TOPIC, 1)
    promised = dict.fromkeys((group_in(partition) for partition in range(PARTITIONS)), -1)
    kills = 0
    for number, workers in enumerate((1, 4, 2, 1, 3, 1)):
        if number:
            nodes.workers = workers
            nodes.start()
        for group, offset in promised.items():
            assert committed(addresses(nodes), group) == offset, f"{workers} workers"
        for partition, group in enumerate(promised):
            offset = 100 * number + partition
            node = nodes.leader(partition) if workers > 1 else 1
            raw.commit_offsets(nodes.address(node), group, TOPIC, {0: offset})
            promised[group] = offset
        if number % 2:
            nodes.kill9()
            kills += 1
        else:
            nodes.terminate()
    assert kills == 3


def test_topics_are_the_same_everywhere_and_take_their_offsets_with_them(make_nodes: MakeNodes) -> None:
    nodes = make_nodes(2)
    first, second = addresses(nodes)
    groups = [group_in(partition) for partition in range(PARTITIONS)]
    raw.create_topic(second, TOPIC, 3, configs={END_GROUP: groups[0]})
    for partition, group in enumerate(groups):
        raw.commit_offsets(nodes.address(nodes.leader(partition)), group, TOPIC, {0: 7 + partition})
    for address in (first, second):
        assert raw.end_offset(address, TOPIC, 0) == 7, "the end is asked of the node that has the group"
    raw.alter_configs(first, TOPIC, {END_GROUP: groups[1]})

    def is_that_of_the_other_group() -> bool:
        return {raw.end_offset(address, TOPIC, 0) for address in (first, second)} == {8}

    wait_until(is_that_of_the_other_group, what="the end of another group at both nodes")
    raw.delete_topic(first, TOPIC)

    def forgotten() -> bool:
        return all(committed(addresses(nodes), group) == -1 for group in groups)

    wait_until(forgotten, what="the offsets of a deleted topic to go at both nodes")
    nodes.terminate()


def test_what_clients_are_told_is_the_same_from_every_node(make_nodes: MakeNodes) -> None:
    nodes = make_nodes(3)
    told = []
    for address in addresses(nodes):
        answer = raw.metadata(address, "__consumer_offsets")
        brokers = sorted((broker.node_id, broker.host, broker.port) for broker in answer.brokers)
        (topic,) = answer.topics
        leaders = sorted((p.partition_index, p.leader_id, p.leader_epoch) for p in topic.partitions)
        told.append((brokers, leaders, answer.controller_id))
    assert told[0] == told[1] == told[2]
    brokers, leaders, _ = told[0]
    assert brokers == [(node, "127.0.0.1", nodes.port + node - 1) for node in (1, 2, 3)]
    assert leaders == [(p.partition, p.leader, p.leader_epoch) for p in nodes.look().partitions]
    nodes.terminate()


def test_every_worker_shows_the_groups_of_all_over_http(make_nodes: MakeNodes) -> None:
    nodes = make_nodes(3, worker_timeout_ms=60_000)
    groups = sorted(group_in(partition) for partition in range(PARTITIONS))
    raw.create_topic(nodes.address(1), TOPIC, 1, configs={END_GROUP: groups[0]})
    for partition in range(PARTITIONS):
        group, offset = group_in(partition), 9 if group_in(partition) == groups[0] else 5
        raw.commit_offsets(nodes.address(nodes.leader(partition)), group, TOPIC, {0: offset})
    for node in (1, 2, 3):
        pages = [nodes.overview(node, "groups", limit="4")]
        while pages[-1]["next"] is not None:
            pages.append(nodes.overview(node, "groups", limit="4", after=pages[-1]["next"]))
        shown = [row for page in pages for row in page["groups"]]
        assert [row["group"] for row in shown] == groups
        assert {row["node"] for row in shown} == {1, 2, 3}
        lags = [row["lag"] for row in shown]
        assert lags == [0] + [4] * (PARTITIONS - 1), "the end is that of the first group, at whichever node"
        assert [(page["total"], page["missing"]) for page in pages] == [(PARTITIONS, [])] * len(pages)

    for node in (1, 2, 3):
        assert {nodes.overview(node, "group", group=group)["lag"] for group in groups[1:]} == {4}

    theirs = {group_in(p) for p in range(PARTITIONS) if nodes.leader(p) == 2}
    pid = nodes.signal(2, signal.SIGSTOP)
    page = nodes.overview(3, "groups")
    assert page["missing"] == [
        {"node": 2, "partitions": [], "reason": "the node has not answered within 2 s"}
    ]
    assert [row["group"] for row in page["groups"]] == sorted(set(groups) - theirs)
    with chromium() as browser, open_tab(browser) as tab:
        tab.goto(nodes.page(3))
        expect(tab.get_by_text("Not shown: node 2: the node has not answered within 2 s")).to_be_visible()
        expect(tab.get_by_role("table", name="Groups").locator("tbody").get_by_role("row")).to_have_count(
            len(set(groups) - theirs)
        )
        assert accessibility_violations(tab) == ""
    other = min(set(groups) - theirs - {groups[0]})
    assert nodes.overview(3, "group", group=other)["group"] == other, "the node that leads it is asked alone"
    with pytest.raises(HTTPError) as refused:
        nodes.overview(3, "group", group=min(theirs))
    assert (refused.value.code, refused.value.read().decode()) == (
        HTTPStatus.SERVICE_UNAVAILABLE,
        "the partition of this group is not available now: node 2: the node has not answered within 2 s\n",
    )
    with pytest.raises(HTTPError, match="404"):
        nodes.overview(
            3, "group", group=group_in(min(p for p in range(PARTITIONS) if nodes.leader(p) != 2), 1)
        )
    os.kill(pid, signal.SIGCONT)
    wait_until(lambda: not nodes.overview(1, "groups")["missing"], what="the answer of the node that goes on")


def test_the_commands_show_move_and_drain(make_nodes: MakeNodes) -> None:
    nodes = make_nodes(2)
    (before,) = json.loads(command(nodes, "list", "--json").stdout)
    assert [(node["node"], node["state"], node["restarts"]) for node in before["nodes"]] == [
        (1, "serving", 0),
        (2, "serving", 0),
    ]
    partition = next(each["partition"] for each in before["partitions"] if each["leader"] == 1)
    assert (
        command(nodes, "move", str(partition), "--to", "2").stdout == f"node 2 leads partition {partition}\n"
    )
    assert nodes.leader(partition) == 2
    for arguments, reason in {
        ("move", "99", "--to", "1"): "there is no partition 99: they are 0 to 9",
        ("move", "0", "--to", "7"): "node 7 does not serve; those that do are 1, 2",
        ("drain", "7"): "node 7 does not serve; those that do are 1, 2",
    }.items():
        refused = command(nodes, *arguments)
        assert (refused.returncode, refused.stderr) == (1, f"groupkeeper: {reason}\n")
    assert command(nodes, "drain", "1").stdout == "node 1 is drained and has ended\n"
    last = command(nodes, "drain", "2")
    assert "node 2 is the last one that serves" in last.stderr
    lines = command(nodes, "list").stdout.splitlines()
    assert lines[0].split() == ["NODE", "STATE", "ADDRESS", "PARTITIONS", "RESTARTS", "PID"]
    assert lines[1].split()[:4] == ["2", "serving", nodes.address(2), str(PARTITIONS)]
    assert len(lines) == 4 + PARTITIONS
    assert stat.S_IMODE((nodes.data_dir / "control.sock").stat().st_mode) == 0o600
    nodes.terminate()


def command(nodes: Nodes, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `groupkeeper partitions`."""
    return groupkeeper("partitions", *arguments, "--data-dir", nodes.data_dir)


def test_the_offsets_topic_is_read_from_the_node_that_leads_each_partition(make_nodes: MakeNodes) -> None:
    nodes = make_nodes(2)
    raw.create_topic(nodes.address(1), TOPIC, 4)
    for partition in range(PARTITIONS):
        leader = nodes.address(nodes.look().partitions[partition].leader)
        raw.commit_offsets(leader, group_in(partition), TOPIC, {0: 100 + partition})
    epochs = {each.partition: (each.leader, each.leader_epoch) for each in nodes.look().partitions}
    for node in (1, 2):
        (topic,) = raw.metadata(nodes.address(node), OFFSETS_TOPIC).topics
        told = {each.partition_index: (each.leader_id, each.leader_epoch) for each in topic.partitions}
        assert (topic.is_internal, told) == (True, epochs)
    for node in (1, 2):
        with raw.RawConnection(nodes.address(node)) as connection:
            (found,) = fetch(connection, dict.fromkeys(range(PARTITIONS), 0)).responses
            for answer in found.partitions:
                is_led = epochs[answer.partition_index][0] == node
                assert answer.error_code == (0 if is_led else ErrorCode.NOT_LEADER_OR_FOLLOWER)
                assert len(bytes(answer.records)) > 0 or not is_led
            for partition in range(PARTITIONS):
                is_led = epochs[Partition(partition)][0] == node
                answer = list_offset(connection, partition, LATEST)
                assert answer.error_code == (0 if is_led else ErrorCode.NOT_LEADER_OR_FOLLOWER)
                assert answer.offset == (1 if is_led else -1)
    consumer = Consumer(with_confluent, nodes.address(1), list(range(PARTITIONS)))
    try:
        expected = {group_in(partition): {(TOPIC, 0): 100 + partition} for partition in range(PARTITIONS)}
        wait_until(lambda: consumer.has(expected), what="all commits, from both nodes")
        # A partition moves, and who follows it goes on at its next leader.
        moved = next(partition for partition, (leader, _) in epochs.items() if leader == 1)
        nodes.move(moved, 2)
        raw.wait_for_coordinator(nodes.address(2), group_in(moved))
        raw.commit_offsets(nodes.address(2), group_in(moved), TOPIC, {0: 500})
        expected[group_in(moved)][TOPIC, 0] = 500
        wait_until(lambda: consumer.has(expected), what="a commit at the next leader")
    finally:
        consumer.close()
