# SPDX-License-Identifier: Apache-2.0
"""What many groups have alike they share, and what one does not need is not made for it."""

from coordinator.groups.classic import shared_topic_sets
from coordinator.partitions.shard import Shard
from protocol.newtypes import GroupId
from tests.groups.harness import Cluster
from tests.support.consumer_protocol import encode_subscription

SUBSCRIPTION = encode_subscription(["orders"])


def fresh(text: str) -> str:
    """An equal text, decoded anew as from a frame."""
    return text.encode().decode()


def cluster_of(count: int) -> Cluster:
    """As many groups of one member that subscribes to the same topic."""
    cluster = Cluster()
    for number in range(count):
        joined = cluster.member(
            group=f"g{number}",
            client_id=fresh("client"),
            protocols=[(fresh("range"), SUBSCRIPTION)],
            protocol_type=fresh("consumer"),
        ).response
        cluster.sync(joined.member_id, 1, {joined.member_id: b"a"}, group=f"g{number}")
    return cluster


def assert_alike_is_shared(shard: Shard) -> None:
    one, other = (shard.groups[GroupId(group_id)] for group_id in ("g0", "g1"))
    (first,), (second,) = one.classic_group.members.values(), other.classic_group.members.values()
    assert first.client_id is second.client_id
    assert first.client_host is second.client_host
    assert first.protocol_type is second.protocol_type is other.classic_group.protocol_type
    assert first.supported_protocols[0][0] is second.supported_protocols[0][0]
    assert one.classic_group.subscribed_topics is other.classic_group.subscribed_topics
    assert one.classic_group.static_members is other.classic_group.static_members
    assert one.classic_group.pending_members is other.classic_group.pending_members
    assert one.offsets.by_topic is other.offsets.by_topic


def test_what_groups_have_alike_is_there_once() -> None:
    cluster = cluster_of(2)
    assert_alike_is_shared(cluster.shard)
    assert cluster.group("g0").pending_sync_members is cluster.group("g1").pending_sync_members
    assert_alike_is_shared(cluster.log.replay())


def test_what_is_shared_is_not_changed_by_what_a_group_gets() -> None:
    cluster = cluster_of(2)
    cluster.join(group="g0", instance="i")
    cluster.join(group="g0")
    cluster.commit(1, group="g0", version=2, member_id=next(iter(cluster.group("g0").members)), generation=1)
    other = cluster.kept("g1")
    assert not other.classic_group.static_members
    assert not other.classic_group.pending_members
    assert not other.offsets.by_topic
    assert cluster.group("g0").static_members


def test_sets_of_topics_are_shared_up_to_a_bound() -> None:
    for number in range(2 * shared_topic_sets.SHARED_TOPICS_MAX):
        shared_topic_sets.intern_topics(frozenset([f"t{number}"]))
    assert len(shared_topic_sets._shared_topics) <= shared_topic_sets.SHARED_TOPICS_MAX
    long = frozenset(map(str, range(11)))
    assert shared_topic_sets.intern_topics(long) is long
    assert long not in shared_topic_sets._shared_topics


def test_a_deadline_costs_no_more_than_its_timer() -> None:
    """Its call and its argument are there already."""
    cluster = cluster_of(3)
    callbacks = {id(callback) for _, _, callback, _ in cluster.timers.heap}
    assert len(callbacks) == 1
    kept = {id(kept) for kept in cluster.shard.groups.values()}
    assert {id(argument) for *_, argument in cluster.timers.heap} == kept
