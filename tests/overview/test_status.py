# SPDX-License-Identifier: Apache-2.0
"""The status of a service, from what each node knows."""

from typing import Any

from coordinator.overview.group_list import UnservedPart
from coordinator.overview.status import (
    PROBLEMS_MAX,
    NodeStatus,
    ServiceStatus,
    make_node_status,
    merge_statuses,
)

READY: dict[str, Any] = {
    "ready": True,
    "complete": True,
    "log_refusing_since": None,
    "log_refusing_reason": None,
    "jobs_failing_since": {},
    "partitions_owned": 5,
    "partitions_loading": [],
    "partitions_waiting": [],
    "partitions_failed": {},
    "partitions_in_wrong_place": {},
}
BROKEN: dict[str, Any] = {
    "complete": False,
    "log_refusing_since": 1_700_000_000.0,
    "log_refusing_reason": "No space left on device",
    "jobs_failing_since": {"compact": 1_700_000_001.0},
    "partitions_loading": [4],
    "partitions_waiting": [1, 2],
    "partitions_failed": {"3": "damaged"},
    "partitions_in_wrong_place": {"0": "move it"},
}
UPSTREAM: dict[str, Any] = {
    "cluster_id": "k",
    "error": None,
    "brokers": {
        "1": {"address": "k1:9092", "error": None},
        "2": {"address": "k2:9092", "error": "Connection refused"},
    },
}


def node(number: int = 1, **ready: Any) -> NodeStatus:
    return make_node_status(number, "1.2", "here", READY | ready, 7, (10, 100), 4_096, None)


def status(*nodes: NodeStatus, missing: tuple[UnservedPart, ...] = ()) -> ServiceStatus:
    return merge_statuses(nodes, missing)


def test_all_is_well() -> None:
    found = status(node(2), node(1))
    assert [(each.node, each.groups, each.partitions, each.disk_free) for each in found.nodes] == [
        (1, 7, 5, 10),
        (2, 7, 5, 10),
    ]
    assert (found.ready, found.complete, found.problems, found.upstream) == (True, True, [], None)
    assert (found.version, found.cluster_id) == ("1.2", "here")


def test_everything_that_is_wrong_is_named_with_its_node() -> None:
    found = status(node(1, **BROKEN), node(2))
    assert found.problems == [
        "node 1: the log accepts no commits since 2023-11-14T22:13:20Z: No space left on device",
        "node 1: the job compact fails since 2023-11-14T22:13:21Z",
        "node 1: partition 3 cannot be served: damaged",
        "node 1: partition 0 is in the wrong place: move it",
        "node 1: 2 partitions wait for the log to accept commits again",
    ]
    assert (found.ready, found.complete, found.nodes[0].loading) == (True, False, 1)


def test_the_problems_of_one_node_are_bounded() -> None:
    failed = {str(number): "damaged" for number in range(PROBLEMS_MAX + 5)}
    problems = node(1, partitions_failed=failed).problems
    assert len(problems) == PROBLEMS_MAX + 1
    assert problems[-1] == "5 more problems: see /ready"


def test_what_is_missing_is_a_problem_and_a_missing_node_is_not_ready() -> None:
    unled = UnservedPart(-1, list(range(30)), "it has no leader")
    found = status(node(), missing=(unled,))
    named = ", ".join(map(str, range(PROBLEMS_MAX)))
    assert found.problems == [f"no node, partitions {named}, and more: it has no leader"]
    assert (found.ready, found.complete) == (True, False)
    found = status(node(), missing=(UnservedPart(2, [], "the node is starting"),))
    assert (found.ready, found.complete, found.problems) == (False, False, ["node 2: the node is starting"])
    nobody = status(missing=(UnservedPart(1, [], "the node is starting"),))
    assert (nobody.ready, nobody.complete, nobody.version) == (False, False, None)


def test_problems_of_the_cluster_are_named_once() -> None:
    front = {"upstream": UPSTREAM, "gateways": {"serving": 1, "wanted": 2}}
    found = status(node(1, **front), node(2, **front))
    assert found.problems == [
        "1 of 2 gateway processes accept clients",
        "broker 2 (k2:9092): Connection refused",
    ]
    away = UPSTREAM | {"error": "cannot reach k:9092", "brokers": {}}
    found = status(node(1, upstream=away, gateways={"serving": 2, "wanted": 2}))
    assert found.problems == ["the cluster cannot be used: cannot reach k:9092"]
