# SPDX-License-Identifier: Apache-2.0
"""OffsetCommit: which commits are taken, in every state, and how each partition is answered."""

from collections import Counter
from uuid import UUID

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from tests.kafka.differential.catalogue import TIGHT, every, scenario
from tests.kafka.differential.groups import IN_STATE, PREPARING, stable_group
from tests.kafka.differential.ordinary import NO_TOPIC, commit_topic, fetch_group, fetch_topic
from tests.kafka.differential.scenarios.join_group import State
from tests.kafka.differential.scenarios.topics import have_topic
from tests.kafka.differential.script import Script

COMMIT = ApiKey.OFFSET_COMMIT
INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
STRANGER = UUID(int=9 << 64)


@scenario(version=every(COMMIT))
def from_outside_of_a_group(s: Script, version: int) -> None:
    a = s.connect()
    a.commit(version, topics=[commit_topic(s, "apples", (0, 7), (2, 9)), commit_topic(s, "pears", (1, 5))])
    a.fetch_offsets()
    a.describe()
    a.list_groups()


@scenario(version=every(COMMIT))
def by_a_member(s: Script, version: int) -> None:
    group = stable_group(s)
    group.leader.commit(version)
    group.follower.commit(version, topics=[commit_topic(s, "pears", (0, 1))])
    group.outsider.fetch_offsets(topics=None, groups=[fetch_group(s.group, None)])


@scenario(version=every(COMMIT))
def errors_of_each_version(s: Script, version: int) -> None:
    group = stable_group(s)
    c = group.outsider
    c.commit(version)
    c.commit(version, member_id="nobody", generation_id_or_member_epoch=2)
    c.commit(version, group_id=s.id("none"), generation_id_or_member_epoch=1)
    c.commit(version, group_id=s.id("none"), member_id="nobody")
    c.commit(version, group_id=s.id("none"), member_id="nobody", generation_id_or_member_epoch=0)
    group.leader.commit(version, generation_id_or_member_epoch=1)
    group.leader.commit(version, group_instance_id="i")
    waiting = group.leader.rejoin()
    s.until(PREPARING)
    group.follower.commit(version)
    group.follower.rejoin().reply()
    waiting.reply()
    group.follower.generation = 3
    group.follower.commit(version)


@scenario(version=every(COMMIT, until=9))
def topics_that_do_not_exist(s: Script, version: int) -> None:
    a = s.connect()
    a.commit(version, topics=[commit_topic(s, NO_TOPIC, (0, 1), (5, 2))])
    known = [
        commit_topic(s, "apples", (0, 1)),
        commit_topic(s, NO_TOPIC, (0, 2)),
        commit_topic(s, "pears", (1, 3)),
    ]
    a.commit(version, topics=known)
    a.commit(version, topics=[commit_topic(s, "apples", (2, 1), (3, 2), (0, 3), (-1, 4), (INT32_MAX, 5))])
    a.commit(
        version,
        topics=[
            commit_topic(s, "apples", (0, 1), (3, 2)),
            commit_topic(s, NO_TOPIC, (0, 3)),
            commit_topic(s, "pears", (7, 4), (0, 5)),
        ],
    )
    a.fetch_offsets(groups=[fetch_group(s.group, None)])


@scenario()
def topics_that_do_not_exist_by_id(s: Script) -> None:
    a = s.connect()
    stranger = {**commit_topic(s, "apples", (0, 2), (4, 2)), "topic_id": STRANGER}
    nameless = {**commit_topic(s, "apples", (0, 3)), "topic_id": None}
    a.commit(topics=[stranger])
    a.commit(topics=[nameless])
    a.commit(topics=[commit_topic(s, "apples", (0, 1)), stranger, nameless, commit_topic(s, "pears", (1, 3))])
    a.commit(
        topics=[commit_topic(s, "apples", (0, 1), (3, 2)), stranger, commit_topic(s, "pears", (7, 4), (0, 5))]
    )
    a.commit(topics=[stranger, stranger])
    a.fetch_offsets(groups=[fetch_group(s.group, None)])


@scenario()
def unknown_topics_come_before_the_groups_errors(s: Script) -> None:
    group = stable_group(s)
    mixed = [
        commit_topic(s, "apples", (0, 1), (3, 2)),
        commit_topic(s, NO_TOPIC, (0, 3)),
        commit_topic(s, "pears", (0, 1)),
    ]
    group.outsider.commit(9, member_id="nobody", generation_id_or_member_epoch=2, topics=mixed)
    group.outsider.commit(9, group_id=s.id("none"), generation_id_or_member_epoch=2, topics=mixed)
    group.outsider.commit(9, group_id=s.id("none"), generation_id_or_member_epoch=2, topics=mixed[1:2])
    group.leader.commit(9, topics=mixed, generation_id_or_member_epoch=1)


@scenario()
def the_same_topic_or_partition_twice(s: Script) -> None:
    a = s.connect()
    a.commit(9, topics=[commit_topic(s, "apples", (0, 1), (0, 2))])
    a.fetch_offsets()
    a.commit(9, topics=[commit_topic(s, "apples", (0, 3)), commit_topic(s, "apples", (0, 4), (1, 5))])
    a.fetch_offsets()
    a.commit(9, topics=[commit_topic(s, "apples", (0, 6), (9, 7)), commit_topic(s, "apples", (1, 8), (9, 9))])
    a.commit(9, topics=[commit_topic(s, NO_TOPIC, (0, 6)), commit_topic(s, NO_TOPIC, (0, 8), (1, 9))])
    a.commit(10, topics=[commit_topic(s, "apples", (0, 3)), commit_topic(s, "apples", (0, 4), (9, 5))])
    a.fetch_offsets()


@scenario(version=every(COMMIT))
def nothing_to_commit(s: Script, version: int) -> None:
    a = s.connect()
    a.commit(version, topics=[])
    a.commit(version, topics=[commit_topic(s, "apples")])
    a.commit(version, topics=[commit_topic(s, NO_TOPIC)])
    a.commit(version, topics=[commit_topic(s, "apples"), commit_topic(s, "pears", (0, 1))])
    a.commit(version, topics=[], group_id=s.id("none"), generation_id_or_member_epoch=5)
    a.commit(
        version, topics=[commit_topic(s, "apples")], group_id=s.id("none"), generation_id_or_member_epoch=5
    )
    a.describe()


@scenario()
def offsets_at_their_limits(s: Script) -> None:
    a = s.connect()
    for offset in (INT64_MIN, -2, -1, 0, 1, INT64_MAX):
        a.commit(topics=[commit_topic(s, "apples", (0, offset))])
        a.fetch_offsets()


@scenario(version=every(COMMIT, since=6))
def leader_epochs(s: Script, version: int) -> None:
    a = s.connect()
    for epoch in (INT32_MIN, -2, -1, 0, 5, INT32_MAX):
        a.commit(version, topics=[commit_topic(s, "apples", (0, 3), committed_leader_epoch=epoch)])
        a.fetch_offsets()


@scenario(version=every(COMMIT))
def metadata(s: Script, version: int) -> None:
    a = s.connect()
    for text in (None, "", "x", "grüße \U0001f600", "x" * 4_096):
        a.commit(version, topics=[commit_topic(s, "apples", (0, 3), committed_metadata=text)])
        a.fetch_offsets()


@scenario()
def metadata_that_is_too_long(s: Script) -> None:
    a = s.connect()
    for text in (
        "x" * 4_096,
        "x" * 4_097,
        "ü" * 4_096,
        "ü" * 4_097,
        "\U0001f600" * 2_048,
        "\U0001f600" * 2_049,
    ):
        partitions = commit_topic(s, "apples", (0, 3), committed_metadata=text)["partitions"]
        partitions += commit_topic(s, "apples", (1, 4))["partitions"]
        a.commit(topics=[{**commit_topic(s, "apples"), "partitions": partitions}])
    a.fetch_offsets()


@scenario()
def metadata_that_is_too_long_beside_unknown_topics(s: Script) -> None:
    a = s.connect()
    long = commit_topic(s, "apples", (0, 3), (9, 3), committed_metadata="x" * 5_000)
    a.commit(9, topics=[long, commit_topic(s, NO_TOPIC, (0, 1)), commit_topic(s, "pears", (0, 1))])
    a.commit(9, topics=[long])


@scenario(settings=TIGHT)
def metadata_of_a_few_characters(s: Script) -> None:
    a = s.connect()
    for text in ("x" * 8, "x" * 9, "ü" * 8, "ü" * 9, "\U0001f600" * 4, "\U0001f600" * 5):
        a.commit(topics=[commit_topic(s, "apples", (0, 3), committed_metadata=text)])
        a.fetch_offsets()


@scenario(version=every(COMMIT, until=4))
def retention_times(s: Script, version: int) -> None:
    a = s.connect()
    for retention_ms in (-1, 0, -2, 1, 3_600_000, INT64_MAX, INT64_MIN):
        a.commit(version, retention_time_ms=retention_ms)
        a.fetch_offsets()


@scenario(state=IN_STATE)
def generations(s: Script, state: State) -> None:
    group = state(s, instances=["i", None])
    for generation in (INT32_MIN, -2, -1, 0, 1, 2, 3, INT32_MAX):
        group.leader.commit(generation_id_or_member_epoch=generation)
        group.follower.commit(generation_id_or_member_epoch=generation)
    group.outsider.fetch_offsets()


@scenario(state=IN_STATE)
def ids(s: Script, state: State) -> None:
    group = state(s, instances=["i", None])
    for member_id in ("", "nobody", group.leader.id, group.follower.id):
        for instance_id in ("", "i", "j", None):
            for generation in (-1, 1, 2):
                group.outsider.commit(
                    member_id=member_id,
                    group_instance_id=instance_id,
                    generation_id_or_member_epoch=generation,
                )
    group.outsider.fetch_offsets()


@scenario()
def to_a_group_of_given_out_ids_only(s: Script) -> None:
    a = s.connect()
    asked = a.join()
    a.commit()
    a.commit(generation_id_or_member_epoch=0)
    a.commit(member_id=asked.member_id)
    a.commit(member_id="nobody", group_instance_id="i")
    a.fetch_offsets()


@scenario()
def to_a_group_of_offsets_only(s: Script) -> None:
    a = s.connect()
    a.commit()
    a.commit(generation_id_or_member_epoch=0)
    a.commit(member_id="nobody")
    a.commit(member_id="nobody", generation_id_or_member_epoch=0)
    a.commit(group_instance_id="i")
    a.commit(group_instance_id="i", generation_id_or_member_epoch=0)
    a.describe()


@scenario(group_id={"blank": " ", "accents": "grüße", "long": "x" * 1_000})
def group_ids(s: Script, group_id: str) -> None:
    a = s.connect()
    mine = s.id(group_id)
    a.commit(group_id=mine)
    a.fetch_offsets(groups=[fetch_group(mine, [])])


@scenario()
def offsets_stay_while_members_come_and_go(s: Script) -> None:
    group = stable_group(s, size=1)
    group.leader.commit()
    group.leader.leave()
    group.outsider.fetch_offsets()
    group.outsider.commit(topics=[commit_topic(s, "apples", (0, 8))])
    group.outsider.join(3)
    group.outsider.fetch_offsets()
    group.outsider.commit(topics=[commit_topic(s, "apples", (0, 9))])
    group.outsider.fetch_offsets()


@scenario()
def more_than_a_batch_holds(s: Script) -> None:
    a = s.connect()
    have_topic(s, a, "wide", 300)
    name = s.id("wide")
    a.commit(9, topics=[commit_topic(s, name, (0, 1))])
    for count in (240, 300):
        rows = [(partition, 2) for partition in range(count)]
        with s.quietly():
            reply = a.commit(9, topics=[commit_topic(s, name, *rows, committed_metadata="m" * 4_000)])
        answered = Counter(
            ErrorCode(row.error_code).name for topic in reply.topics for row in topic.partitions
        )
        s.note(f"{count} partitions, each with 4,000 bytes: {dict(answered)}")
        a.fetch_offsets(9, groups=[fetch_group(s.group, [fetch_topic(s, name, 0, 239)])])
