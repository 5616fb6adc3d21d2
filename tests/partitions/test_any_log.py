# SPDX-License-Identifier: Apache-2.0
"""What stands above the log port, on a log that fails and is late in each partition by itself."""

import errno
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from coordinator.logs.group_log import LogError, LogTimedOut, LogUnavailable, LogWriter
from coordinator.partitions.leadership import Leadership
from coordinator.partitions.loader import Loader
from protocol import hot
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import ListGroupsRequest
from protocol.newtypes import GroupId, LeaderEpoch, MemberId, Partition
from tests.net import requests
from tests.net.edge import Client, Edge, settle
from tests.partitions.running import commit_error, eventually, fetched, group_in
from tests.support.groups import classic
from tests.support.memory_log import MemoryLog, MemoryTopic

NONE = ErrorCode.NONE
NOT_COORDINATOR = ErrorCode.NOT_COORDINATOR
PARTITIONS: Final = tuple(map(Partition, range(3)))
P0, P1, P2 = PARTITIONS
LOST = LogUnavailable("nobody knows why", {"topic": "offsets"})


class Led:
    """A server whose partitions are led through the port, on a topic in memory."""

    def __init__(self, data_dir: Path, topic: MemoryTopic | None = None, **config: Any) -> None:
        data_dir.mkdir(exist_ok=True)
        self.edge = Edge(data_dir, **config)
        self.topic = topic or MemoryTopic()
        self.log = MemoryLog(self.topic)
        self.log.on_failed = self._failed
        manager = self.manager = self.edge.manager
        manager.remove_groups_for_partition(P0)
        manager.num_partitions = len(PARTITIONS)
        self.leadership = Leadership(
            manager, Loader(self.edge.clock, self.edge.stats), self.log, self.edge.stats
        )
        self.leadership.retry_s = 0.001
        self.groups = [group_in(manager, partition) for partition in PARTITIONS]

    def _failed(self, writers: Sequence[LogWriter], error: LogError) -> None:
        """Do as App does."""
        self.edge.server.refuse_replies_of_lost_appends()
        self.leadership.reload_after_lost_appends(writers, error)

    async def lead(self, leader_epoch: int = 0) -> None:
        """Lead all partitions."""
        for partition in PARTITIONS:
            self.leadership.become_leader(partition, LeaderEpoch(leader_epoch))
        await self.loaded()

    async def loaded(self) -> None:
        """Wait until all that is led is served."""
        await eventually(lambda: self.leadership.has_loaded_all_partitions, "all partitions to be loaded")

    async def commit(self, client: Client, partition: int, offset: int) -> ErrorCode:
        """Commit, and wait for the answer."""
        client.send(requests.commit(self.groups[partition], {0: offset}))
        return commit_error(await answer(client))

    async def fetch(self, client: Client, partition: int) -> dict[int, int]:
        client.send(requests.fetch_offsets(self.groups[partition]))
        return fetched(await answer(client))


async def answer(client: Client) -> bytes:
    frames: list[bytes] = []

    def heard() -> bool:
        frames.extend(client.answers())
        return bool(frames)

    await eventually(heard, "an answer")
    (frame,) = frames
    return frame


@pytest.fixture
async def led(tmp_path: Path) -> AsyncIterator[Led]:
    led = Led(tmp_path)
    await led.lead()
    yield led
    await led.leadership.cancel_all_loads()


async def test_what_fails_in_one_partition_fails_the_replies_about_it_alone(led: Led) -> None:
    client, other = led.edge.connect(), led.edge.connect()
    assert await led.commit(client, 0, 1) is NONE
    kept = classic(led.manager, led.groups[0])
    led.log.hold(P0, P1)
    client.send(requests.commit(led.groups[1], {0: 1}, 1), requests.commit(led.groups[0], {0: 2}, 2))
    other.send(requests.fetch_offsets(led.groups[0]), requests.fetch_offsets(led.groups[2]))
    await settle()
    assert client.answers() == other.answers() == []

    led.log.fail(P1, LOST)
    led.log.let_go(P1)
    await settle()

    (failed,) = client.answers()
    assert commit_error(failed) is NOT_COORDINATOR
    assert other.answers() == [], "nothing is known of the partition that it asks for"
    led.log.let_go(P0)
    await settle()
    (committed,) = client.answers()
    assert commit_error(committed) is NONE
    assert [fetched(frame) for frame in other.answers()] == [{0: 2}, {}]
    assert classic(led.manager, led.groups[0]) is kept
    await led.loaded()
    assert await led.fetch(client, 1) == {}


async def test_a_partition_comes_back_with_what_was_acknowledged_and_perhaps_with_more(led: Led) -> None:
    client = led.edge.connect()
    for partition in PARTITIONS:
        assert await led.commit(client, partition, 1) is NONE
    led.log.fail(P1, LOST)
    assert await led.commit(client, 1, 2) is NOT_COORDINATOR
    led.log.fail(P2, LOST, kept=True)
    assert await led.commit(client, 2, 2) is NOT_COORDINATOR
    await led.loaded()
    assert [await led.fetch(client, partition) for partition in PARTITIONS] == [{0: 1}, {0: 1}, {0: 2}]
    assert await led.commit(client, 1, 3) is NONE


async def test_an_append_that_timed_out_sends_its_client_back_to_the_coordinator(led: Led) -> None:
    client = led.edge.connect()
    assert await led.commit(client, 0, 1) is NONE
    for kept in (False, True):
        led.log.fail(P0, LogTimedOut("not confirmed", {"partition": P0}), kept=kept)
        assert await led.commit(client, 0, 2) is ErrorCode.COORDINATOR_NOT_AVAILABLE, "as from a broker"
        await led.loaded()
        assert await led.fetch(client, 0) == {0: 2 if kept else 1}
    assert await led.commit(client, 0, 3) is NONE


async def test_replies_leave_in_order_whichever_partition_is_durable_first(led: Led) -> None:
    client = led.edge.connect()
    led.log.hold(P0)
    client.send(
        requests.commit(led.groups[0], {0: 1}, 1),
        requests.commit(led.groups[1], {0: 1}, 2),
        requests.api_versions(3),
    )
    await settle()
    assert client.answers() == []
    writes = client.transport.writes
    led.log.let_go(P0)
    await settle()
    assert client.correlation_ids() == [1, 2, 3]
    assert client.transport.writes == writes + 1


@pytest.mark.parametrize(("failing", "working"), [(P0, P1), (P1, P0)])
async def test_what_depends_on_several_partitions_waits_for_all_and_fails_with_any(
    led: Led, failing: Partition, working: Partition
) -> None:
    client, asking = led.edge.connect(), led.edge.connect()
    listing = requests.request(ApiKey.LIST_GROUPS, 4, ListGroupsRequest(version=4))
    led.log.hold(P0, P1)
    client.send(requests.commit(led.groups[0], {0: 1}), requests.commit(led.groups[1], {0: 1}))
    asking.send(listing)
    await settle()
    led.log.let_go(working)
    await settle()
    assert asking.answers() == []
    led.log.fail(failing, LOST)
    led.log.let_go(failing)
    await settle()
    (frame,) = asking.answers()
    assert requests.answer(ApiKey.LIST_GROUPS, 4, frame).error_code == NOT_COORDINATOR
    await led.loaded()
    asking.send(listing)
    await settle()
    (frame,) = asking.answers()
    told = [group.group_id for group in requests.answer(ApiKey.LIST_GROUPS, 4, frame).groups]
    assert told == [led.groups[working]]


async def test_what_a_reply_says_of_a_lost_append_is_refused_however_late_it_comes(tmp_path: Path) -> None:
    led = Led(tmp_path, initial_rebalance_delay_ms=60_000)
    await led.lead()
    client, other = led.edge.connect(), led.edge.connect()
    client.send(requests.join(led.groups[0], version=3))
    await settle()
    ctx = client.connection._parked
    assert ctx is not None
    led.log.hold(P1)
    other.send(requests.commit(led.groups[1], {0: 1}))
    kept = led.manager.find(GroupId(led.groups[1]))
    assert kept is not None
    led.log.fail(P1, LOST)
    led.log.let_go(P1)
    await settle()
    assert client.answers() == []

    ctx.add_ticket(kept.ticket)
    ctx.answer_parked_request(
        hot.JoinGroupResponse(error_code=NONE, member_id=MemberId("m"), protocol_name=None)
    )
    await settle()

    (frame,) = client.answers()
    assert requests.answer(ApiKey.JOIN_GROUP, 3, frame).error_code == NOT_COORDINATOR
    await led.leadership.cancel_all_loads()


async def test_a_leader_that_another_node_has_followed_gives_the_partition_up(
    led: Led, tmp_path: Path
) -> None:
    client = led.edge.connect()
    assert await led.commit(client, 0, 1) is NONE
    successor = Led(tmp_path / "other", led.topic)
    await successor.lead(1)

    assert await led.commit(client, 0, 2) is NOT_COORDINATOR

    await settle()
    assert 0 not in led.manager.owned_partitions
    assert 0 not in led.manager.loading_partitions, "it would fight for the partition"
    assert 1 in led.manager.owned_partitions, "nothing has been written to it that could have told"
    other = successor.edge.connect()
    assert await successor.fetch(other, 0) == {0: 1}
    assert await successor.commit(other, 0, 3) is NONE
    await successor.leadership.cancel_all_loads()


async def test_a_partition_whose_log_is_away_is_led_again_when_it_is_back(led: Led) -> None:
    client = led.edge.connect()
    assert await led.commit(client, 0, 1) is NONE
    led.log.fail(P0, LOST, broken=True)
    for offset in (2, 3):
        assert await led.commit(client, 0, offset) is NOT_COORDINATOR
    assert await led.commit(client, 1, 1) is NONE
    assert not led.leadership.has_loaded_all_partitions
    assert led.manager.waiting_partitions == {0}
    led.log.mend(P0)
    await led.loaded()
    assert await led.fetch(client, 0) == {0: 1}
    assert await led.commit(client, 0, 4) is NONE


async def test_a_log_that_goes_away_in_the_middle_of_a_load_is_read_from_the_start_again(
    led: Led, tmp_path: Path
) -> None:
    client = led.edge.connect()
    for offset in range(1, 6):
        assert await led.commit(client, 0, offset) is NONE
    reader = Led(tmp_path / "other", led.topic)
    reader.leadership.become_leader(P0, LeaderEpoch(1))
    await eventually(lambda: reader.leadership._loads[P0], "the load to begin")
    reader.log.fail(P0, LOST, broken=True)
    await eventually(lambda: reader.manager.waiting_partitions == {0}, "the load to stop")
    reader.log.mend(P0)
    await reader.loaded()
    assert await reader.fetch(reader.edge.connect(), 0) == {0: 5}
    assert reader.edge.stats.partition_load_failures == 0
    await reader.leadership.cancel_all_loads()


async def test_a_damaged_partition_is_named_in_the_words_of_its_log(led: Led, tmp_path: Path) -> None:
    client = led.edge.connect()
    for partition in (P0, P1):
        assert await led.commit(client, partition, 1) is NONE
    (batch,) = led.topic.batches[P0]
    led.topic.batches[P0] = [batch[:-3] + b"?" + batch[-2:]]
    reader = Led(tmp_path / "other", led.topic)
    for partition in (P0, P1):
        reader.leadership.become_leader(partition, LeaderEpoch(1))
    await eventually(lambda: not reader.manager.loading_partitions, "the loads to end")
    assert list(reader.leadership.failed_partitions) == [0]
    assert "partition 0 offset 0: checksum" in reader.leadership.failed_partitions[P0]
    other = reader.edge.connect()
    assert await reader.commit(other, 0, 2) is NOT_COORDINATOR
    assert await reader.commit(other, 1, 2) is NONE
    await reader.leadership.cancel_all_loads()


async def test_a_load_that_ends_in_an_error_of_no_known_kind_is_tried_again(led: Led, tmp_path: Path) -> None:
    client = led.edge.connect()
    assert await led.commit(client, 0, 1) is NONE
    reader = Led(tmp_path / "other", led.topic)
    reader.leadership.retry_s = 3_600
    errors = reader.log.claim_errors
    errors.append(OSError(errno.EIO, "nobody converts this"))
    reader.leadership.become_leader(P0, LeaderEpoch(1))
    await eventually(lambda: P0 in reader.leadership.failed_partitions, "the load to fail")
    assert "nobody converts this" in reader.leadership.failed_partitions[P0]
    assert reader.edge.stats.partition_load_failures == 1
    await reader.leadership.cancel_all_loads()

    reader.leadership.retry_s = 0
    errors.append(OSError(errno.EIO, "nobody converts this"))
    reader.leadership.become_leader(P0, LeaderEpoch(2))
    await eventually(lambda: not errors, "the claim")
    await reader.loaded()
    assert await reader.fetch(reader.edge.connect(), 0) == {0: 1}
    await reader.leadership.cancel_all_loads()
