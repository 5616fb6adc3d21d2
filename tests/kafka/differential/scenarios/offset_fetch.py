# SPDX-License-Identifier: Apache-2.0
"""OffsetFetch: of some partitions, of everything, of several groups, by name and by id, with and without a member."""

from typing import Any
from uuid import UUID

from protocol.apis import ApiKey
from tests.kafka.differential.catalogue import every, scenario
from tests.kafka.differential.groups import IN_STATE
from tests.kafka.differential.ordinary import NO_TOPIC, by_name, commit_topic, fetch_group, fetch_topic
from tests.kafka.differential.scenarios.join_group import State
from tests.kafka.differential.script import Script

FETCH = ApiKey.OFFSET_FETCH
INT32_MAX = 2**31 - 1
STRANGER = UUID(int=9 << 64)


def have_offsets(s: Script, group_id: str | None = None) -> Any:
    """A connection, after offsets were committed in two topics."""
    a = s.connect()
    topics = [
        commit_topic(s, "pears", (1, 5), committed_metadata="m"),
        commit_topic(s, "apples", (2, 9), (0, 7)),
    ]
    with s.quietly():
        a.commit(group_id=group_id or s.group, topics=topics)
    s.note(f"{group_id or s.group} has offsets: pears 1: 5, apples 2: 9, apples 0: 7")
    return a


def asking(s: Script, version: int, topics: Any, group_id: str | None = None) -> dict[str, Any]:
    """The fields of a request for one group in any version."""
    mine = s.group if group_id is None else group_id
    if version < 8:
        return {"group_id": mine, "topics": topics and by_name(topics)}
    return {"groups": [fetch_group(mine, topics)]}


@scenario(version=every(FETCH))
def some_partitions(s: Script, version: int) -> None:
    a = have_offsets(s)
    a.fetch_offsets(version)
    wanted = [fetch_topic(s, "apples", 2, 1, 0), fetch_topic(s, "pears", 1, 0)]
    a.fetch_offsets(version, **asking(s, version, wanted))
    a.fetch_offsets(version, **asking(s, version, wanted, s.id("none")))


@scenario(version=every(FETCH, since=2))
def everything(s: Script, version: int) -> None:
    a = have_offsets(s)
    a.fetch_offsets(version, **asking(s, version, None))
    a.fetch_offsets(version, **asking(s, version, None, s.id("none")))


@scenario()
def everything_in_version_1(s: Script) -> None:
    a = have_offsets(s)
    a.fetch_offsets(1, **asking(s, 1, None))


@scenario(version=every(FETCH))
def nothing(s: Script, version: int) -> None:
    a = have_offsets(s)
    a.fetch_offsets(version, **asking(s, version, []))
    a.fetch_offsets(version, **asking(s, version, [fetch_topic(s, "apples")]))
    a.fetch_offsets(version, **asking(s, version, [], s.id("none")))


@scenario(version=every(FETCH, until=9))
def topics_that_do_not_exist(s: Script, version: int) -> None:
    a = have_offsets(s)
    wanted = [fetch_topic(s, NO_TOPIC, 0, 5), fetch_topic(s, "apples", 0, 3, -1, INT32_MAX)]
    a.fetch_offsets(version, **asking(s, version, wanted))
    a.fetch_offsets(version, **asking(s, version, [fetch_topic(s, "", 0)]))


@scenario()
def topics_that_do_not_exist_by_id(s: Script) -> None:
    a = have_offsets(s)
    stranger = {**fetch_topic(s, "apples", 0, 4), "topic_id": STRANGER}
    nameless = {**fetch_topic(s, "apples", 0), "topic_id": None}
    a.fetch_offsets(groups=[fetch_group(s.group, [stranger])])
    a.fetch_offsets(groups=[fetch_group(s.group, [nameless])])
    wanted = [fetch_topic(s, "apples", 0, 4), stranger, nameless, fetch_topic(s, "pears", 1)]
    a.fetch_offsets(groups=[fetch_group(s.group, wanted)])
    a.fetch_offsets(groups=[fetch_group(s.id("none"), wanted)])


@scenario(version=every(FETCH))
def the_same_topic_or_partition_twice(s: Script, version: int) -> None:
    a = have_offsets(s)
    a.fetch_offsets(version, **asking(s, version, [fetch_topic(s, "apples", 0, 0, 2, 0)]))
    wanted = [fetch_topic(s, "apples", 0), fetch_topic(s, "pears", 1), fetch_topic(s, "apples", 2, 0)]
    a.fetch_offsets(version, **asking(s, version, wanted))


@scenario(version=every(FETCH))
def the_empty_group_id(s: Script, version: int) -> None:
    a = s.connect()
    a.fetch_offsets(version, **asking(s, version, [fetch_topic(s, "plums", 0)], ""))


@scenario(version=every(FETCH, since=7))
def only_stable_offsets(s: Script, version: int) -> None:
    a = have_offsets(s)
    wanted = [fetch_topic(s, "apples", 0)]
    a.fetch_offsets(version, **asking(s, version, wanted), require_stable=True)
    a.fetch_offsets(version, **asking(s, version, None), require_stable=True)
    a.fetch_offsets(version, **asking(s, version, wanted, s.id("none")), require_stable=True)


@scenario(version=every(FETCH, since=8))
def several_groups(s: Script, version: int) -> None:
    a = have_offsets(s)
    with s.quietly():
        a.commit(group_id=s.id("h"), topics=[commit_topic(s, "plums", (0, 1))])
    one = fetch_group(s.group, [fetch_topic(s, "apples", 0, 1)])
    other = fetch_group(s.id("h"), None)
    none = fetch_group(s.id("none"), [fetch_topic(s, "apples", 0)])
    a.fetch_offsets(version, groups=[one, other, none])
    a.fetch_offsets(version, groups=[none, other, fetch_group(s.id("none"), None), one])
    a.fetch_offsets(version, groups=[one, one, fetch_group("", [fetch_topic(s, "plums", 0)])])
    a.fetch_offsets(version, groups=[])


@scenario(version=every(FETCH, since=9), state=IN_STATE)
def with_a_member(s: Script, version: int, state: State) -> None:
    group = state(s, instances=["i", None])
    wanted = [fetch_topic(s, "apples", 0)]
    for member_id in (None, "", "nobody", group.leader.id):
        for epoch in (-2, -1, 0, 1, 2, 3):
            group.outsider.fetch_offsets(version, groups=[fetch_group(s.group, wanted, member_id, epoch)])
    group.outsider.fetch_offsets(version, groups=[fetch_group(s.group, None, group.leader.id, 2)])


@scenario(state=IN_STATE)
def in_each_state(s: Script, state: State) -> None:
    group = state(s)
    group.outsider.fetch_offsets()
    group.outsider.fetch_offsets(1)
    group.outsider.fetch_offsets(7, topics=None)
    group.outsider.fetch_offsets(groups=[fetch_group(s.group, None)])


@scenario()
def many_partitions_of_everything(s: Script) -> None:
    a = s.connect()
    for topic, partition in (
        ("plums", 0),
        ("apples", 1),
        ("pears", 0),
        ("apples", 0),
        ("apples", 2),
        ("pears", 1),
    ):
        a.commit(topics=[commit_topic(s, topic, (partition, 1))])
    a.fetch_offsets(groups=[fetch_group(s.group, None)])
    a.fetch_offsets(7, topics=None)


@scenario()
def after_every_commit(s: Script) -> None:
    a = s.connect()
    for offset in (5, 4, 0, 100):
        a.commit(topics=[commit_topic(s, "apples", (0, offset))])
        a.fetch_offsets()


@scenario(differs="order-of-all-offsets", version={"v7": 7, "v8": 8, "v10": 10})
def the_order_of_everything(s: Script, version: int) -> None:
    a = have_offsets(s)
    a.fetch_offsets(version, as_it_comes=True, **asking(s, version, None))
