# SPDX-License-Identifier: Apache-2.0
"""Three brokers, of which some are killed, stopped, replaced, or all away: the client finds its way again.

Brokers are started in the test's own thread: they are killed when the thread ends that started them.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from coordinator.cluster_requests.model import TopicPartition, TransferredOffset
from coordinator.upstream.cluster import UpstreamCluster
from coordinator.upstream.config import UpstreamConfig
from coordinator.upstream.end_offsets import UpstreamEnds
from coordinator.upstream.errors import Unreachable, UpstreamError
from coordinator.upstream.groups import UpstreamGroups
from coordinator.upstream.monitor import UpstreamMonitor
from protocol.newtypes import GroupId
from tests.kafka.cluster import KafkaCluster
from tests.upstream.servers import servers

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(300)]

PARTITIONS = 6
GROUPS = [GroupId(f"g{number}") for number in range(6)]


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """Three brokers with a topic of six partitions, each of which has three copies and ten records."""
    settings: dict[str, str | int] = {
        "offsets.topic.num.partitions": 6,
        "controlled.shutdown.enable": "false",
    }
    cluster = KafkaCluster(tmp_path_factory.mktemp("three"), brokers=3, settings=settings)
    try:
        cluster.start()
        cluster.create_topic("t", PARTITIONS)
        cluster.wait_until_in_sync()
        for partition in range(PARTITIONS):
            cluster.produce("t", 10, partition=partition)
        yield cluster
    finally:
        cluster.close()


@pytest.fixture
def healthy(three: KafkaCluster) -> KafkaCluster:
    """The cluster with all of its brokers, whatever the test before has done to them."""
    for node_id, broker in three.brokers.items():
        if not broker.runs:
            three.restart(node_id)
    three.wait_until_in_sync()
    return three


@pytest.fixture
async def upstream(healthy: KafkaCluster) -> AsyncIterator[UpstreamCluster]:
    """Our client, connected."""
    config = UpstreamConfig(servers(healthy.bootstrap()), request_timeout_ms=30_000)
    cluster = UpstreamCluster(config, read=Path.read_bytes)
    await cluster.connect()
    yield cluster
    await cluster.close()


async def committed(upstream: UpstreamCluster, offset: int) -> None:
    """Commit for groups at all coordinators, and read it again."""
    groups = UpstreamGroups(upstream)
    wanted = {TopicPartition("t", 0): TransferredOffset(offset)}
    for group in GROUPS:
        assert await groups.commit(group, wanted) == {}
        found = await groups.fetch_committed_offsets(group)
        assert found[TopicPartition("t", 0)].offset == offset, group
    assert set(GROUPS) <= set(await groups.list_groups())


async def ends_are_known(upstream: UpstreamCluster, ends: UpstreamEnds) -> None:
    wanted = {TopicPartition("t", partition): 10 for partition in range(PARTITIONS)}
    async with asyncio.timeout(120):
        while await ends.fetch_end_offsets(wanted) != wanted:  # noqa: ASYNC110 - the cluster has no event for us
            await asyncio.sleep(0.1)


async def test_any_broker_may_be_killed(three: KafkaCluster, upstream: UpstreamCluster) -> None:
    ends = UpstreamEnds(upstream)
    await committed(upstream, 1)
    await ends_are_known(upstream, ends)
    for offset, victim in enumerate(list(three.brokers), start=2):
        three.kill9(victim)
        await committed(upstream, offset)
        await ends_are_known(upstream, ends)
        assert victim not in await upstream.refresh()
        three.restart(victim)
        three.wait_until_in_sync()
        await upstream.refresh()


async def test_all_of_them_go_and_come_back(three: KafkaCluster, upstream: UpstreamCluster) -> None:
    ends = UpstreamEnds(upstream)
    await ends_are_known(upstream, ends)
    for broker in three.brokers.values():
        broker.kill9()
    with pytest.raises(Unreachable, match=r"^upstream\.bootstrap\.servers: cannot reach 127\.0\.0\.1:\d+: "):
        await upstream.refresh()
    with pytest.raises(UpstreamError):
        await UpstreamGroups(upstream).list_groups()
    for broker in three.brokers.values():
        broker.launch()
    three.wait_until_up()
    assert set(await upstream.refresh()) == set(three.brokers)
    await ends_are_known(upstream, ends)
    await committed(upstream, 20)


async def test_a_broker_that_hangs_holds_up_nobody_for_long(healthy: KafkaCluster) -> None:
    """As behind a network that drops everything: its connections stay open."""
    config = UpstreamConfig(servers(healthy.bootstrap()), request_timeout_ms=2_000)
    upstream = UpstreamCluster(config, read=Path.read_bytes)
    await upstream.connect()
    victim = healthy.brokers[2]
    victim.pause()
    try:
        async with asyncio.timeout(120):
            for _ in range(3):
                assert await upstream.refresh()
            while 2 in await upstream.refresh():  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.1)
            await committed_soon(upstream, 30)
    finally:
        victim.resume()
        await upstream.close()
    healthy.wait_until_up()


async def committed_soon(upstream: UpstreamCluster, offset: int) -> None:
    while True:
        try:
            await committed(upstream, offset)
        except UpstreamError:
            await asyncio.sleep(0.1)
        else:
            return


async def test_the_monitor_follows_a_broker_that_is_replaced(
    three: KafkaCluster, upstream: UpstreamCluster
) -> None:
    seen: list[set[int]] = []
    changes = []

    async def note(change: object) -> None:
        changes.append(change)

    monitor = UpstreamMonitor(
        upstream, {}, refresh_ms=200, on_topics=note, on_brokers=lambda found: seen.append(set(found))
    )
    await monitor.refresh_and_report_changes()
    running = asyncio.create_task(monitor.run())
    try:
        three.replace(3, 9)
        async with asyncio.timeout(120):
            while seen[-1] != {1, 2, 9}:  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.05)
    finally:
        running.cancel()
        await asyncio.wait([running])
    assert seen[0] == {1, 2, 3}
    assert len(changes) == 1, "no topic has changed by that"
    assert monitor.failing is None
    await committed(upstream, 40)
