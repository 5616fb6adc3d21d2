# SPDX-License-Identifier: Apache-2.0
"""OffsetDelete: of offsets that nobody needs, and of those in use."""

from tests.kafka.differential.catalogue import scenario
from tests.kafka.differential.groups import IN_STATE, completing_group, stable_group
from tests.kafka.differential.ordinary import NO_TOPIC, commit_topic, delete_topic, fetch_group, protocols
from tests.kafka.differential.scenarios.join_group import State
from tests.kafka.differential.scenarios.offset_fetch import have_offsets
from tests.kafka.differential.script import Script
from tests.support.consumer_protocol import encode_subscription

INT32_MAX = 2**31 - 1


@scenario()
def of_a_group_of_offsets_only(s: Script) -> None:
    a = have_offsets(s)
    a.delete_offsets(topics=[delete_topic("apples", 0, 1), delete_topic("pears", 1)])
    a.fetch_offsets(groups=[fetch_group(s.group, None)])
    a.delete_offsets(topics=[delete_topic("apples", 0, 2)])
    a.fetch_offsets(groups=[fetch_group(s.group, None)])
    a.describe()
    a.list_groups()


@scenario()
def groups_that_do_not_exist(s: Script) -> None:
    a = s.connect()
    a.delete_offsets(group_id="")
    a.delete_offsets(group_id=s.id("none"))
    a.delete_offsets(group_id=s.id("none"), topics=[])
    a.delete_offsets(group_id=s.id("none"), topics=[delete_topic(NO_TOPIC, 0)])
    a.delete_offsets(group_id=s.id("none"), topics=[delete_topic("apples", 0), delete_topic(NO_TOPIC, 0)])


@scenario()
def topics_and_partitions_that_do_not_exist(s: Script) -> None:
    a = have_offsets(s)
    a.delete_offsets(topics=[delete_topic(NO_TOPIC, 0, 1)])
    a.delete_offsets(topics=[delete_topic("", 0)])
    a.delete_offsets(topics=[delete_topic("apples", 0, 3, -1, INT32_MAX)])
    a.delete_offsets(
        topics=[delete_topic("pears", 9), delete_topic(NO_TOPIC, 0), delete_topic("apples", 2, 7)]
    )
    a.fetch_offsets(groups=[fetch_group(s.group, None)])


@scenario()
def nothing(s: Script) -> None:
    a = have_offsets(s)
    a.delete_offsets(topics=[])
    a.delete_offsets(topics=[delete_topic("apples")])
    a.delete_offsets(topics=[delete_topic(NO_TOPIC)])
    a.delete_offsets(topics=[delete_topic("apples"), delete_topic("pears", 0)])


@scenario()
def the_same_topic_or_partition_twice(s: Script) -> None:
    a = have_offsets(s)
    a.delete_offsets(topics=[delete_topic("apples", 0, 0)])
    a.delete_offsets(topics=[delete_topic("apples", 2), delete_topic("apples", 2, 1)])
    a.delete_offsets(topics=[delete_topic("pears", 7, 1), delete_topic("pears", 1, 7)])
    a.fetch_offsets(groups=[fetch_group(s.group, None)])


@scenario(state=IN_STATE)
def in_each_state(s: Script, state: State) -> None:
    group = state(s)
    both = [delete_topic("apples", 0), delete_topic("pears", 0), delete_topic(NO_TOPIC, 0)]
    group.outsider.delete_offsets(topics=both)
    group.outsider.delete_offsets(topics=both[:1])
    group.outsider.delete_offsets(topics=both[1:2])


@scenario()
def topics_that_members_consume(s: Script) -> None:
    group = stable_group(s)
    with s.quietly():
        group.leader.commit(topics=[commit_topic(s, "apples", (0, 1)), commit_topic(s, "pears", (0, 2))])
    group.outsider.delete_offsets(topics=[delete_topic("apples", 0, 1, 9), delete_topic("pears", 0, 1)])
    group.outsider.fetch_offsets(groups=[fetch_group(s.group, None)])
    group.outsider.leave(members=[member.identity for member in group.members])
    group.outsider.delete_offsets(topics=[delete_topic("apples", 0)])
    group.outsider.fetch_offsets(groups=[fetch_group(s.group, None)])


@scenario(
    metadata={
        "empty": b"",
        "no topics": encode_subscription([], version=0),
        "two topics": encode_subscription(["pears", "plums"], version=1),
        "version 3": encode_subscription(["plums"], version=3),
    }
)
def by_what_members_subscribe_to(s: Script, metadata: bytes) -> None:
    group = stable_group(s, size=1, protocols=protocols("range", metadata=metadata))
    topics = [delete_topic(name, 0) for name in ("apples", "pears", "plums", NO_TOPIC)]
    group.outsider.delete_offsets(topics=topics)


@scenario()
def of_members_that_are_no_consumers(s: Script) -> None:
    a = s.connect()
    joined = a.join(3, protocol_type="connect", protocols=protocols("p"))
    a.delete_offsets()
    a.sync(4, member_id=joined.member_id)
    a.delete_offsets()
    a.delete_offsets(topics=[delete_topic(NO_TOPIC, 0)])
    a.leave(members=[{"member_id": joined.member_id, "group_instance_id": None}])
    a.delete_offsets()


@scenario()
def of_a_group_of_given_out_ids_only(s: Script) -> None:
    a = s.connect()
    a.join()
    a.delete_offsets()


@scenario()
def before_anybody_has_synced(s: Script) -> None:
    group = completing_group(s)
    group.outsider.delete_offsets(topics=[delete_topic("apples", 0), delete_topic("pears", 0)])
