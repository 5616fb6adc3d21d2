# SPDX-License-Identifier: Apache-2.0
"""What is asked of a real broker about topics, groups and ends."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import confluent_kafka as ck
import pytest

from coordinator.cluster_requests.model import ClusterGroupState, TopicPartition, TransferredOffset
from coordinator.upstream.cluster import UpstreamCluster
from coordinator.upstream.config import UpstreamConfig
from coordinator.upstream.end_offsets import UpstreamEnds
from coordinator.upstream.errors import RetryTimeout, UpstreamRequestRefused
from coordinator.upstream.groups import UpstreamGroups
from coordinator.upstream.monitor import UpstreamMonitor
from coordinator.upstream.open_transaction_partitions import split_into_portions
from coordinator.upstream.topic_diff import ABSENT, UNSURE, SeenTopic, TopicDiff
from coordinator.upstream.topics import UpstreamTopicsReader
from protocol.errors import ErrorCode
from protocol.newtypes import GroupId
from protocol.wire import MAX_STRING_BYTES
from tests.kafka.cluster import USERS, KafkaCluster
from tests.support import raw
from tests.support.newer_groups import member_of
from tests.support.waiting import wait_until
from tests.upstream.servers import servers

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def topic(kafka: KafkaCluster) -> str:
    """Three partitions with 10, 0 and 4 records."""
    kafka.create_topic("asked", 3)
    kafka.produce("asked", 10, partition=0)
    kafka.produce("asked", 4, partition=2)
    raw.wait_for_coordinator(kafka.address(1), "any")
    return "asked"


@contextmanager
def member(kafka: KafkaCluster, group: str, topic: str, **settings: Any) -> Iterator[ck.Consumer]:
    """A consumer that is in the group and has partitions."""
    consumer = ck.Consumer(
        {**kafka.client_settings(), "group.id": group, "auto.offset.reset": "earliest", **settings}
    )
    try:
        consumer.subscribe([topic])

        def assigned() -> bool:
            consumer.poll(0.2)
            return bool(consumer.assignment())

        wait_until(assigned, what=f"partitions for a member of {group}")
        yield consumer
    finally:
        consumer.close()


# --- topics ---


async def test_topics_with_ids_and_partitions(
    kafka: KafkaCluster, topic: str, upstream: UpstreamCluster
) -> None:
    topics = UpstreamTopicsReader(upstream)
    look = await topics.fetch_all_topics()
    assert look.topics[topic].partitions == 3
    assert any(look.topics[topic].topic_id)
    assert await topics.fetch_all_topics() is look, "the same bytes are not decoded again"
    answers = await topics.fetch_topics_by_name([topic, "nowhere"])
    assert answers == {topic: look.topics[topic], "nowhere": ABSENT}


async def test_what_a_user_may_not_describe_is_no_absence(
    kafka: KafkaCluster, topic: str, tmp_path: Path
) -> None:
    async with asyncio.timeout(120):
        bob = await as_user(kafka, tmp_path, "bob")
        topics = UpstreamTopicsReader(bob)
        assert topic not in (await topics.fetch_all_topics()).topics
        assert await topics.fetch_topics_by_name([topic]) == {topic: UNSURE}
        with pytest.raises(
            UpstreamRequestRefused, match=r"GROUP_AUTHORIZATION_FAILED.*upstream\.sasl\.username"
        ):
            await UpstreamGroups(bob).fetch_committed_offsets(GroupId("any"))
        await bob.close()


async def test_the_monitor_follows_topics(kafka: KafkaCluster, upstream: UpstreamCluster) -> None:
    changes: list[TopicDiff] = []
    brokers: list[set[int]] = []

    async def note(change: TopicDiff) -> None:
        changes.append(change)

    monitor = UpstreamMonitor(
        upstream,
        {"was-here": SeenTopic(b"x" * 16, 1)},
        refresh_ms=100,
        on_topics=note,
        on_brokers=lambda found: brokers.append(set(found)),
    )
    await monitor.refresh_and_report_changes()
    assert "was-here" in monitor.topics, "one denial is not enough"
    assert brokers == [{1}]
    await monitor.refresh_and_report_changes()
    assert changes[-1] == TopicDiff(deleted=("was-here",))
    kafka.create_topic("followed", 2)
    async with running(monitor):
        first = await until(lambda: monitor.topics.get("followed"))
        assert first.partitions == 2
        kafka.grow_topic("followed", 4)
        await until(lambda: monitor.topics["followed"].partitions == 4)
        kafka.delete_topic("followed")
        await until(lambda: "followed" not in monitor.topics)
        kafka.create_topic("followed", 1)
        again = await until(lambda: monitor.topics.get("followed"))
    assert again.partitions == 1
    assert again.topic_id != first.topic_id
    assert brokers == [{1}]


async def test_a_topic_that_was_made_anew_between_two_looks(
    kafka: KafkaCluster, upstream: UpstreamCluster
) -> None:
    changes: list[TopicDiff] = []

    async def note(change: TopicDiff) -> None:
        changes.append(change)

    kafka.create_topic("anew", 1)
    monitor = UpstreamMonitor(upstream, {}, refresh_ms=60_000, on_topics=note, on_brokers=lambda _: None)
    await monitor.refresh_and_report_changes()
    old = monitor.topics["anew"]
    kafka.delete_topic("anew")
    kafka.create_topic("anew", 2)
    await monitor.refresh_and_report_changes()
    assert monitor.topics["anew"] == old, "one answer is not enough"
    await monitor.refresh_and_report_changes()
    assert changes[-1].deleted == ("anew",)
    assert changes[-1].created["anew"].topic_id != old.topic_id
    kafka.delete_topic("anew")


# --- groups ---


async def test_offsets_go_there_and_come_back(
    kafka: KafkaCluster, topic: str, upstream: UpstreamCluster
) -> None:
    groups = UpstreamGroups(upstream)
    assert await groups.fetch_committed_offsets(GroupId("moved")) == {}
    assert await groups.fetch_group_state(GroupId("moved")) == ClusterGroupState.none()
    offsets = {
        TopicPartition(topic, 0): TransferredOffset(7, 0, "some metadata"),
        TopicPartition(topic, 2): TransferredOffset(4),
    }
    assert await groups.commit(GroupId("moved"), offsets) == {}
    assert await groups.fetch_committed_offsets(GroupId("moved")) == offsets
    assert raw.fetch_offsets(kafka.address(1), "moved") == {(topic, 0): 7, (topic, 2): 4}
    state = await groups.fetch_group_state(GroupId("moved"))
    assert (state.kind, state.is_live) == ("classic", False)
    listed = (await groups.list_groups())[GroupId("moved")]
    assert (listed.state, listed.kind) == ("Empty", "classic")


async def test_more_offsets_than_fit_into_one_commit(topic: str, upstream: UpstreamCluster) -> None:
    groups = UpstreamGroups(upstream, offsets_per_commit=2)
    offsets = {TopicPartition(topic, index): TransferredOffset(index) for index in range(3)}
    assert await groups.commit(GroupId("many"), offsets) == {}
    assert await groups.fetch_committed_offsets(GroupId("many")) == offsets


async def test_a_partition_that_is_not_there_is_refused_alone(topic: str, upstream: UpstreamCluster) -> None:
    gone = TopicPartition("nowhere", 0)
    offsets = {gone: TransferredOffset(1), TopicPartition(topic, 0): TransferredOffset(2)}
    refused = await UpstreamGroups(upstream).commit(GroupId("partly"), offsets)
    assert refused == {gone: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert await UpstreamGroups(upstream).fetch_committed_offsets(GroupId("partly")) == {
        TopicPartition(topic, 0): TransferredOffset(2)
    }


@pytest.mark.parametrize("kind", ["", "classic", "consumer", "streams"])
async def test_what_would_be_refused_is_said_and_nothing_is_stored(
    kafka: KafkaCluster, topic: str, upstream: UpstreamCluster, kind: str
) -> None:
    """Whatever the group is: nowhere, or of a kind, without members."""
    groups, name = UpstreamGroups(upstream, offsets_per_commit=2), GroupId(f"would-{kind or 'nowhere'}")
    if kind == "streams":
        with member_of("streams", kafka.address(1), name, topic):
            pass
    elif kind:
        with member(kafka, name, topic, **{"group.protocol": kind}):
            pass
        await until_async(groups, name)
    before = await groups.fetch_group_state(name), await groups.fetch_committed_offsets(name)
    assert before[0].kind == kind
    gone = {TopicPartition("nowhere", 0), TopicPartition(topic, 3)}
    offsets = dict.fromkeys(
        [*gone, *(TopicPartition(topic, index) for index in range(3))], TransferredOffset(1)
    )
    refused = dict.fromkeys(gone, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert await groups.predict_commit_errors(name, offsets) == refused
    assert (await groups.fetch_group_state(name), await groups.fetch_committed_offsets(name)) == before
    assert await groups.commit(name, offsets) == refused


async def test_what_a_user_may_not_commit_would_be_refused(
    kafka: KafkaCluster, topic: str, tmp_path: Path
) -> None:
    for operation in ("READ", "DESCRIBE"):
        kafka.allow("alice", operation, "GROUP", "of-alice")
    kafka.allow("alice", "DESCRIBE", "TOPIC", topic)
    async with asyncio.timeout(120):
        alice = await as_user(kafka, tmp_path, "alice")
        groups, offsets = UpstreamGroups(alice), {TopicPartition(topic, 0): TransferredOffset(1)}
        refused = dict.fromkeys(offsets, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        assert await groups.predict_commit_errors(GroupId("of-alice"), offsets) == refused
        assert await groups.commit(GroupId("of-alice"), offsets) == refused
        for attempt in (groups.predict_commit_errors, groups.commit):
            with pytest.raises(UpstreamRequestRefused, match="GROUP_AUTHORIZATION_FAILED"):
                await attempt(GroupId("of-others"), offsets)
        await alice.close()


@pytest.mark.parametrize(("protocol", "kind"), [("classic", "classic"), ("consumer", "consumer")])
async def test_a_live_group_is_seen_and_takes_no_offsets(
    kafka: KafkaCluster, topic: str, upstream: UpstreamCluster, protocol: str, kind: str
) -> None:
    groups, name = UpstreamGroups(upstream), GroupId(f"live-{protocol}")
    with member(kafka, name, topic, **{"group.protocol": protocol}):
        state = await groups.fetch_group_state(name)
        assert (state.kind, state.members, state.is_live) == (kind, 1, True)
        assert (await groups.list_groups())[name].kind == kind
        with pytest.raises(UpstreamRequestRefused, match="UNKNOWN_MEMBER_ID"):
            await groups.commit(name, {TopicPartition(topic, 0): TransferredOffset(1)})
    await until_async(groups, name)
    assert await groups.commit(name, {TopicPartition(topic, 0): TransferredOffset(1)}) == {}
    assert (await groups.fetch_committed_offsets(name))[TopicPartition(topic, 0)].offset == 1


async def test_a_streams_group_is_seen_and_takes_offsets_once_it_is_empty(
    kafka: KafkaCluster, topic: str, upstream: UpstreamCluster
) -> None:
    groups, name = UpstreamGroups(upstream), GroupId("live-streams")
    offsets = {TopicPartition(topic, 0): TransferredOffset(1)}
    with member_of("streams", kafka.address(1), name, topic):
        state = await groups.fetch_group_state(name)
        assert (state.kind, state.members, state.is_live) == ("streams", 1, True)
        with pytest.raises(UpstreamRequestRefused, match="UNKNOWN_MEMBER_ID"):
            await groups.commit(name, offsets)
    assert await groups.fetch_group_state(name) == ClusterGroupState("streams", "Empty", 0)
    assert await groups.commit(name, offsets) == {}
    assert await groups.fetch_committed_offsets(name) == offsets


async def test_a_share_group_is_seen_and_takes_no_offsets(
    kafka: KafkaCluster, topic: str, upstream: UpstreamCluster
) -> None:
    groups, name, place = UpstreamGroups(upstream), GroupId("live-share"), TopicPartition(topic, 0)
    refused = {place: ErrorCode.GROUP_ID_NOT_FOUND}
    with member_of("share", kafka.address(1), name, topic):
        assert await groups.fetch_group_state(name) == ClusterGroupState("share", "Stable", 1)
        assert await groups.commit(name, {place: TransferredOffset(1)}) == refused
    assert await groups.fetch_group_state(name) == ClusterGroupState("share", "Empty", 0)
    assert await groups.commit(name, {place: TransferredOffset(1)}) == refused
    assert await groups.fetch_committed_offsets(name) == {}


@pytest.mark.parametrize("kind", ["streams", "share"])
async def test_a_group_with_the_longest_id_is_seen_with_its_kind(
    kafka: KafkaCluster, topic: str, upstream: UpstreamCluster, kind: str
) -> None:
    groups, name = UpstreamGroups(upstream), GroupId(kind[1] * MAX_STRING_BYTES)
    assert await groups.fetch_group_state(name) == ClusterGroupState.none()
    with member_of(kind, kafka.address(1), name, topic):
        state = await groups.fetch_group_state(name)
        assert (state.kind, state.is_live) == (kind, True)
    assert await groups.fetch_group_state(name) == ClusterGroupState(kind, "Empty", 0)


async def test_a_classic_group_with_the_longest_id_or_none_is_seen(
    kafka: KafkaCluster, topic: str, upstream: UpstreamCluster
) -> None:
    groups = UpstreamGroups(upstream)
    for name in (GroupId(""), GroupId("c" * MAX_STRING_BYTES)):
        assert await groups.fetch_group_state(name) == ClusterGroupState.none()
        assert await groups.commit(name, {TopicPartition(topic, 0): TransferredOffset(1)}) == {}
        assert await groups.fetch_group_state(name) == ClusterGroupState("classic", "Empty", 0)


async def test_offsets_of_an_open_transaction_are_waited_for(
    kafka: KafkaCluster, topic: str, tmp_path: Path
) -> None:
    producer = ck.Producer({**kafka.client_settings(), "transactional.id": "t-1"})
    with member(kafka, "transactional", topic, **{"enable.auto.commit": False}) as consumer:
        consumer.commit(offsets=[ck.TopicPartition(topic, 0, 1)], asynchronous=False)
        producer.init_transactions(30)
        producer.begin_transaction()
        producer.send_offsets_to_transaction(
            [ck.TopicPartition(topic, 0, 5)], consumer.consumer_group_metadata(), 30
        )
    config = UpstreamConfig(servers(kafka.bootstrap()), request_timeout_ms=1_000)
    impatient = UpstreamCluster(config, read=Path.read_bytes)
    try:
        await impatient.connect()
        with pytest.raises(
            RetryTimeout, match="offsets of group transactional: still UNSTABLE_OFFSET_COMMIT"
        ):
            await UpstreamGroups(impatient).fetch_committed_offsets(GroupId("transactional"))
        await asyncio.get_running_loop().run_in_executor(None, producer.commit_transaction, 120)
        found = await UpstreamGroups(impatient).fetch_committed_offsets(GroupId("transactional"))
    finally:
        await impatient.close()
    assert found[TopicPartition(topic, 0)].offset == 5


async def in_background(call: Callable[..., Any], *arguments: Any) -> Any:
    return await asyncio.get_running_loop().run_in_executor(None, call, *arguments)


@pytest.mark.parametrize("is_committed", [True, False])
async def test_the_first_offset_of_a_partition_in_an_open_transaction_is_waited_for(
    kafka: KafkaCluster, topic: str, is_committed: bool
) -> None:
    name = GroupId(f"first-{is_committed}")
    place = TopicPartition(topic, 1)
    producer = ck.Producer({**kafka.client_settings(), "transactional.id": name})
    await in_background(producer.init_transactions, 120)
    producer.begin_transaction()
    # A consumer that is no member: so the group has nothing but what is in the transaction.
    consumer = ck.Consumer({**kafka.client_settings(), "group.id": name})
    sent = [ck.TopicPartition(topic, 1, 5)]
    await in_background(producer.send_offsets_to_transaction, sent, consumer.consumer_group_metadata(), 120)
    consumer.close()
    config = UpstreamConfig(servers(kafka.bootstrap()), request_timeout_ms=1_000)
    impatient = UpstreamCluster(config, read=Path.read_bytes)
    groups = UpstreamGroups(impatient)
    try:
        await impatient.connect()
        state = await groups.fetch_group_state(name)
        assert (state.is_present_in_cluster, state.is_live) == (True, False)
        assert await groups.fetch_committed_offsets(name) == {}, (
            "Kafka says nothing of it where all are asked for"
        )
        with pytest.raises(RetryTimeout, match=f"offsets of group {name}: still UNSTABLE_OFFSET_COMMIT"):
            await groups.wait_for_open_transactions(name)
        await in_background(producer.commit_transaction if is_committed else producer.abort_transaction, 120)
        await groups.wait_for_open_transactions(name)
        assert (await groups.fetch_committed_offsets(name)) == (
            {place: TransferredOffset(5)} if is_committed else {}
        )
    finally:
        await impatient.close()


@pytest.mark.parametrize("size", [1, 3, 100])
def test_every_partition_is_in_one_portion(size: int) -> None:
    partitions = {"a": 5, "b": 1, "none": 0, "c": 7}
    portions = list(split_into_portions(partitions, size))
    found = [(name, part) for portion in portions for name, parts in portion.items() for part in parts]
    assert found == [(name, part) for name, count in partitions.items() for part in range(count)]
    assert all(sum(map(len, portion.values())) <= size for portion in portions)


# --- ends ---


async def test_ends(kafka: KafkaCluster, topic: str, upstream: UpstreamCluster) -> None:
    ends = UpstreamEnds(upstream)
    asked = [TopicPartition(topic, index) for index in (0, 1, 2, 9)] + [TopicPartition("nowhere", 0)]
    assert await ends.fetch_end_offsets(asked) == {
        TopicPartition(topic, 0): 10,
        TopicPartition(topic, 1): 0,
        TopicPartition(topic, 2): 4,
    }


async def test_an_open_transaction_holds_back_the_stable_end(
    kafka: KafkaCluster, upstream: UpstreamCluster
) -> None:
    kafka.create_topic("transacted", 1)
    kafka.produce("transacted", 3)
    producer = ck.Producer({**kafka.client_settings(), "transactional.id": "t-2"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("transacted", b"open")
    producer.flush(30)
    place = TopicPartition("transacted", 0)
    ends = UpstreamEnds(upstream)
    assert await ends.fetch_end_offsets([place]) == {place: 4}
    assert await ends.fetch_end_offsets([place], read_committed=True) == {place: 3}
    producer.abort_transaction(30)
    kafka.delete_topic("transacted")


# --- helpers ---


class running:
    """A monitor that runs in a block."""

    def __init__(self, monitor: UpstreamMonitor) -> None:
        self._monitor = monitor

    async def __aenter__(self) -> None:
        self._task = asyncio.create_task(self._monitor.run())

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])


async def until(condition: Callable[[], Any]) -> Any:
    """Return what `condition` returns, once that is something true."""
    async with asyncio.timeout(120):
        value = condition()
        while not value:
            await asyncio.sleep(0.02)
            value = condition()
    return value


async def until_async(groups: UpstreamGroups, name: GroupId) -> None:
    """Return once the group has no members any more."""
    async with asyncio.timeout(120):
        state = await groups.fetch_group_state(name)
        while state.is_live:
            await asyncio.sleep(0.02)
            state = await groups.fetch_group_state(name)


async def as_user(kafka: KafkaCluster, tmp_path: Path, user: str) -> UpstreamCluster:
    password = tmp_path / user
    password.write_text(USERS[user])
    config = UpstreamConfig(
        servers(kafka.bootstrap("SASL_PLAINTEXT")),
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_username=user,
        sasl_password_file=password,
    )
    cluster = UpstreamCluster(config, read=Path.read_bytes)
    await cluster.connect()
    return cluster
