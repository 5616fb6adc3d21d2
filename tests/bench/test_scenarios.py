# SPDX-License-Identifier: Apache-2.0
"""Every scenario against a running server, with a bounded number of requests: no error when all is well,
and when it is not, errors and no requests served."""

import asyncio
from collections import Counter

import pytest

from bench import churn, load
from bench.cluster import Cluster, Unprepared
from bench.load import Measured, Window
from bench.play import PLAYED, Options, play
from bench.scenarios import PARTITIONS, SHAPES, TOPIC, Shape, Stage, set_stage
from bench.servers import Server

REQUESTS = 256
GROUPS = 6


def options(server: Server, **more: object) -> Options:
    changes = {"groups": GROUPS}
    return Options(server.address, server_pids=[server.pid], requests=REQUESTS, changes=changes, **more)  # type: ignore[arg-type]


def run(stage: Stage) -> Measured:
    return asyncio.run(load.run(stage.lanes, 4, Window()))


@pytest.mark.parametrize("scenario", PLAYED)
def test_a_scenario_without_errors(server: Server, scenario: str) -> None:
    result = play(scenario, options(server))
    assert (result["errors"], result["error_kinds"]) == (0, {})
    if scenario == "groups":
        # join, join with the id, sync, commit, leave
        assert (result["findings"]["groups"], result["requests"]) == (GROUPS, 5 * GROUPS)
    else:
        connections = SHAPES[scenario].connections
        assert result["requests"] == -(-REQUESTS // connections) * connections
    assert result["server_cpu_s"] >= 0
    assert result["driver_cpu_s_per_100k"] > 0
    assert 0 < result["latency_ms"]["p50"] <= result["latency_ms"]["max"]


@pytest.mark.parametrize(
    "caps",
    [
        pytest.param({"OffsetCommit": 9, "OffsetFetch": 9}, id="topic names instead of ids"),
        pytest.param(
            {"OffsetCommit": 2, "OffsetFetch": 2, "FindCoordinator": 0, "JoinGroup": 0, "SyncGroup": 0,
             "Heartbeat": 0, "LeaveGroup": 0, "Metadata": 1, "DeleteGroups": 0},
            id="old versions",
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("scenario", ["mixed", "fetch_p100", "groups"])
def test_older_versions(server: Server, scenario: str, caps: dict[str, int]) -> None:
    result = play(scenario, options(server, caps=caps))
    assert (result["errors"], result["error_kinds"]) == (0, {})
    assert result["versions"] | caps == result["versions"]


def test_a_duration_instead_of_a_number(server: Server) -> None:
    chosen = Options(server.address, duration_s=1.0, warmup_s=0.05, changes={"groups": GROUPS})
    result = play("commit", chosen)
    assert result["errors"] == 0
    assert result["requests"] > 0
    assert result["server_cpu_s"] is None


def small(**shares: int) -> Shape:
    return Shape(connections=2, depth=4, groups=GROUPS, **shares)


def test_heartbeats_of_members_that_left_are_errors(server: Server) -> None:
    with Cluster(server.address) as cluster:
        stage = set_stage(cluster, "left", small(heartbeats=1), limit=40)
        cluster.leave_all(stage.members)
        measured = run(stage)
    assert measured.requests == 0
    assert measured.errors == Counter({"Heartbeat: UNKNOWN_MEMBER_ID (25)": 40})


def test_commits_of_members_that_left_are_errors(server: Server) -> None:
    with Cluster(server.address) as cluster:
        stage = set_stage(cluster, "left", small(heartbeats=1, commits=1), limit=40)
        cluster.leave_all(stage.members)
        measured = run(stage)
    assert measured.requests == 0
    assert measured.errors.total() == 40
    assert {kind.split(":")[0] for kind in measured.errors} == {"Heartbeat", "OffsetCommit"}


def test_a_fetch_of_other_offsets_than_were_committed_is_an_error(server: Server) -> None:
    with Cluster(server.address) as cluster:
        stage = set_stage(cluster, "changed", small(fetches=1), limit=40)
        cluster.commit_all(stage.topic, {group: {0: 987_654} for group in stage.groups})
        measured = run(stage)
        stage.clear()
    assert measured.requests == 0
    assert measured.errors.total() == 40
    assert all("has other offsets" in kind for kind in measured.errors)


def test_a_group_that_is_not_new_is_an_error_and_the_others_go_on(server: Server) -> None:
    with Cluster(server.address) as cluster:
        prepared = churn.prepare(cluster, small())
        topic = cluster.ensure_topic(TOPIC, PARTITIONS)
        cluster.leave_all(cluster.join_all(topic, prepared.groups[:1]))
        measured = asyncio.run(load.run(prepared.lanes, 4, Window()))
    (kind,) = measured.errors
    assert kind.startswith("JoinGroup: a new group of one member has")
    assert (measured.errors.total(), prepared.recipe.completed) == (1, GROUPS - 1)


def test_nothing_stays_behind(server: Server) -> None:
    with Cluster(server.address) as cluster:
        stage = set_stage(cluster, "cleared", small(heartbeats=1), limit=8)
        run(stage)
        stage.clear()
        for group in stage.groups:
            call = cluster.dialect.fetch(stage.topic, group, [0])
            reply = cluster.peer(cluster.look_up_coordinators([group])[group]).ask(call)
            assert cluster.dialect.fetched(stage.topic, group, reply) == {0: -1}


def test_without_a_server_the_reason_is_given(server: Server) -> None:
    nobody_there = server.address._replace(port=1)
    with pytest.raises(Unprepared, match="ApiVersions: still failing"):
        Cluster(nobody_there, timeout_s=0.0)


def test_a_topic_with_too_few_partitions_is_named(server: Server) -> None:
    with Cluster(server.address) as cluster:
        cluster.ensure_topic("bench-small", 2)
        with pytest.raises(Unprepared, match="bench-small has 2 partitions, 3 are needed"):
            cluster.ensure_topic("bench-small", 3)
