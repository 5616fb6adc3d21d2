# SPDX-License-Identifier: Apache-2.0
"""Offsets are set while a group has members: they are removed, and start again from the new offsets."""

import uuid

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition

from coordinator.cli.cluster.commit_after_member_removal import fence_and_commit
from coordinator.cli.cluster.model import CommittedOffset
from coordinator.cli.errors import CommandError
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.hot.leave_group import LeaveGroupResponse, MemberResponse
from protocol.hot.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from protocol.newtypes import MemberId
from tests.cli.answers import Patience, described, member
from tests.cli.conftest import PARTITIONS, Command, consuming
from tests.cli.fake import FakeNode
from tests.kafka.broker import KafkaBroker
from tests.support import raw
from tests.support.waiting import wait_until

KINDS: list[dict[str, str]] = [{}, {"group.instance.id": "i-1"}]
NEXT: list[dict[str, str]] = [
    {"group.protocol": "consumer"},
    {"group.protocol": "consumer", "group.instance.id": "i-1"},
]


def forced(groupkeeper: Command, bootstrap: str, topic: str, settings: dict[str, str]) -> None:
    """A member of that kind is removed by a reset, cannot commit its own place, and starts at the new one."""
    group = f"forced-{uuid.uuid4().hex[:12]}"
    with consuming(bootstrap, group, topic, **settings) as consumer:
        consumer.commit(offsets=[TopicPartition(topic, 0, 99)], asynchronous=False)
        command = ("groups", "reset", group, "--topic", f"{topic}:0", "--to-offset", "5", "--unchecked")
        ran = groupkeeper(*command, "--execute", "--bootstrap", bootstrap)
        said = f"groupkeeper: group {group} has members: stop them first, or remove them with --force\n"
        assert (ran.exit_code, ran.stderr) == (1, said)
        assert raw.fetch_offsets(bootstrap, group) == {(topic, 0): 99}

        done = groupkeeper(*command, "--execute", "--force", "--bootstrap", bootstrap)
        assert done.rows[1:] == [[group, topic, "0", "99", "5"]]
        with pytest.raises(KafkaException):
            consumer.commit(offsets=[TopicPartition(topic, 0, 100)], asynchronous=False)
        assert raw.fetch_offsets(bootstrap, group) == {(topic, 0): 5}
        wait_until(lambda: starts_at(consumer, topic) == 5, what=f"{group} to start at the new offset")


def starts_at(consumer: Consumer, topic: str) -> int | None:
    """What the consumer has been told to start at, once it has all partitions again."""
    consumer.poll(0.05)
    if len(consumer.assignment()) != PARTITIONS:
        return None
    (committed,) = consumer.committed([TopicPartition(topic, 0)], timeout=120)
    return int(committed.offset)


@pytest.mark.parametrize("settings", KINDS, ids=["dynamic", "static"])
def test_a_member_that_is_removed_starts_at_the_new_offset(
    groupkeeper: Command, bootstrap: str, topic: str, settings: dict[str, str]
) -> None:
    forced(groupkeeper, bootstrap, topic, settings)


@pytest.mark.kafka
@pytest.mark.parametrize("settings", NEXT, ids=["dynamic", "static"])
def test_a_member_of_kip_848_that_is_removed_starts_at_the_new_offset(
    groupkeeper: Command, kafka_broker: KafkaBroker, settings: dict[str, str]
) -> None:
    topic = f"next-{uuid.uuid4().hex[:8]}"
    raw.create_topic(kafka_broker.bootstrap, topic, PARTITIONS)
    forced(groupkeeper, kafka_broker.bootstrap, topic, settings)


# --- what can happen meanwhile, with a scripted coordinator ---


def left(*codes: ErrorCode) -> LeaveGroupResponse:
    members = [
        MemberResponse(member_id=MemberId(f"m-{at}"), group_instance_id=None, error_code=code)
        for at, code in enumerate(codes)
    ]
    return LeaveGroupResponse(members=members)


def answered(code: ErrorCode) -> OffsetCommitResponse:
    partition = OffsetCommitResponsePartition(partition_index=0, error_code=code)
    return OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name="t", partitions=[partition])])


WANTED = [CommittedOffset("t", 0, 5)]


def test_members_that_are_back_too_early_are_removed_again(node: FakeNode) -> None:
    commits = iter([ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.NONE])
    node.answers[ApiKey.DESCRIBE_GROUPS] = lambda *_: described(members=[member("m-0", {})])
    node.answers[ApiKey.LEAVE_GROUP] = lambda *_: left(ErrorCode.NONE)
    node.answers[ApiKey.OFFSET_COMMIT] = lambda *_: answered(next(commits))
    with Patience().client(node) as client:
        assert fence_and_commit(client, "g", WANTED) == {}
    assert (node.count(ApiKey.LEAVE_GROUP), node.count(ApiKey.OFFSET_COMMIT)) == (3, 3)


def test_members_that_are_always_back_end_it_when_the_time_is_up(node: FakeNode) -> None:
    node.answers[ApiKey.DESCRIBE_GROUPS] = lambda *_: described(members=[member("m-0", {})])
    node.answers[ApiKey.LEAVE_GROUP] = lambda *_: left(ErrorCode.NONE)
    node.answers[ApiKey.OFFSET_COMMIT] = lambda *_: answered(ErrorCode.UNKNOWN_MEMBER_ID)
    with Patience().client(node, 5.0) as client, pytest.raises(CommandError) as caught:
        fence_and_commit(client, "g", WANTED)
    assert str(caught.value) == "setting offsets of group g: still UNKNOWN_MEMBER_ID after 5 s"


def test_a_member_that_has_just_left_is_no_obstacle_and_one_that_stays_is(node: FakeNode) -> None:
    members = [member("m-0", {}), member("m-1", {}, instance="i")]
    node.answers[ApiKey.DESCRIBE_GROUPS] = lambda *_: described(members=members)
    node.answers[ApiKey.LEAVE_GROUP] = lambda *_: left(ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.NONE)
    node.answers[ApiKey.OFFSET_COMMIT] = lambda *_: answered(ErrorCode.NONE)
    with Patience().client(node) as client:
        assert fence_and_commit(client, "g", WANTED) == {}
    asked = [(each.member_id, each.group_instance_id) for each in node.last(ApiKey.LEAVE_GROUP).members]
    assert asked == [("m-0", None), ("", "i")]

    node.answers[ApiKey.LEAVE_GROUP] = lambda *_: left(ErrorCode.NONE, ErrorCode.FENCED_INSTANCE_ID)
    with Patience().client(node) as client, pytest.raises(CommandError) as caught:
        fence_and_commit(client, "g", WANTED)
    assert str(caught.value) == "not removed from group g: i; nothing was set"
    assert node.count(ApiKey.OFFSET_COMMIT) == 1
