# SPDX-License-Identifier: Apache-2.0
"""How long requests take is counted when their answers leave, by api."""

from pathlib import Path

import pytest

from coordinator.telemetry.stats import Histogram
from protocol.apis import ApiKey
from tests.net import requests
from tests.net.edge import Edge, settle

MS = 1_000_000


def durations_of(edge: Edge, api: ApiKey) -> Histogram:
    return edge.stats.apis[api].durations


async def test_an_answer_that_leaves_at_once_takes_what_its_handling_takes(tmp_path: Path) -> None:
    edge = Edge(tmp_path)
    edge.clock.look_ns = 7
    edge.connect().send(requests.api_versions(1), requests.api_versions(2))
    found = durations_of(edge, ApiKey.API_VERSIONS)
    assert (sum(found.counts), found.counts[0], found.sum_ns) == (2, 2, 14)


async def test_an_answer_that_waits_for_the_disk_counts_when_it_leaves(tmp_path: Path) -> None:
    edge = Edge(tmp_path, flush_by_itself=False)
    client = edge.connect()
    client.send(requests.commit("g", {0: 1}))
    client.send(requests.api_versions())  # behind it, in order
    edge.clock.passed_ms += 40
    commits, others = (durations_of(edge, api) for api in (ApiKey.OFFSET_COMMIT, ApiKey.API_VERSIONS))
    assert not any(commits.counts + others.counts)
    edge.flush()
    assert len(client.answers()) == 2
    for found in (commits, others):
        assert dict(found.cumulative())["0.05"] == sum(found.counts) == 1
        assert found.sum_ns // MS == 40


async def test_a_join_takes_as_long_as_it_is_parked_and_what_waits_behind_it_does_not(tmp_path: Path) -> None:
    edge = Edge(tmp_path, initial_rebalance_delay_ms=3_000)
    client = edge.connect()
    client.send(requests.join("g", version=3))
    client.send(requests.api_versions())
    edge.timers.advance(3_000)
    await settle()
    assert len(client.answers()) == 2
    joins, others = (durations_of(edge, api) for api in (ApiKey.JOIN_GROUP, ApiKey.API_VERSIONS))
    assert (sum(joins.counts), joins.sum_ns // MS) == (1, 3_000)
    assert (joins.counts[-1], others.counts[0]) == (1, 1)


async def test_an_answer_that_is_lost_with_its_connection_counts_nowhere(tmp_path: Path) -> None:
    edge = Edge(tmp_path, flush_by_itself=False)
    client = edge.connect()
    client.send(requests.commit("g", {0: 1}))
    client.connection.abort()
    edge.flush()
    assert not any(durations_of(edge, ApiKey.OFFSET_COMMIT).counts)
    assert edge.stats.apis[ApiKey.OFFSET_COMMIT].handled == 1


@pytest.mark.parametrize(("duration_ns", "bound"), [(0, "0.0001"), (100_000, "0.0001"), (100_001, "0.00025")])
def test_a_bucket_has_what_is_at_most_its_bound(duration_ns: int, bound: str) -> None:
    histogram = Histogram()
    histogram.observe(duration_ns)
    assert next(name for name, count in histogram.cumulative() if count) == bound
