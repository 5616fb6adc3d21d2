# SPDX-License-Identifier: Apache-2.0
"""CreateTopics, CreatePartitions and DeleteTopics: what is refused, and with which error."""

import uuid
from typing import Any

from protocol.apis import ApiKey
from tests.kafka.differential.catalogue import TIGHT, every, scenario
from tests.kafka.differential.scenarios.topics import STRANGER, have_topic, id_of, known_partitions, new_topic
from tests.kafka.differential.script import Link, Script
from tests.support.waiting import wait_until

INT32_MAX = 2**31 - 1


def create(link: Link, version: int, *topics: dict[str, Any], validate_only: bool = True) -> None:
    """CreateTopics, usually only to see what would come of it."""
    link.ask(
        ApiKey.CREATE_TOPICS, version, topics=list(topics), timeout_ms=30_000, validate_only=validate_only
    )


def assigned(name: str, *assignments: tuple[int, list[int]], **more: Any) -> dict[str, Any]:
    """A topic whose replicas are assigned by hand."""
    rows = [{"partition_index": index, "broker_ids": brokers} for index, brokers in assignments]
    return new_topic(name, -1, -1, **{"assignments": rows, **more})


def configured(name: str, **configs: str | None) -> dict[str, Any]:
    """A topic with settings; underscores in names stand for dots."""
    rows = [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()]
    return new_topic(name, configs=rows)


@scenario(version=every(ApiKey.CREATE_TOPICS))
def names_of_new_topics(s: Script, version: int) -> None:
    a = s.connect()
    bad = ("", ".", "..", "a b", "ä", "a/b", "x" * 250)
    for name in (*bad, "...", "x" * 249, "apples", "__consumer_offsets", "__cluster_metadata"):
        create(a, version, new_topic(name))
    have_topic(s, a, "with_underscore", 1)
    for name in ("with.underscore", "with_underscore", "with-underscore"):
        create(a, version, new_topic(s.id(name)))


@scenario(version=every(ApiKey.CREATE_TOPICS))
def counts_of_new_topics(s: Script, version: int) -> None:
    a = s.connect()
    name = s.id("new")
    for partitions, factor in (
        (1, 1),
        (-1, -1),
        (0, 1),
        (-2, 1),
        (1, 0),
        (0, 0),
        (1, -2),
        (1, 2),
        (0, 2),
        (10_001, 1),
        (INT32_MAX, 1),
    ):
        create(a, version, new_topic(name, partitions, factor))


@scenario(settings=TIGHT)
def the_default_count_of_partitions(s: Script) -> None:
    a = s.connect()
    create(a, 7, new_topic(s.id("new"), -1, -1))


@scenario(version=every(ApiKey.CREATE_TOPICS))
def assignments_of_new_topics(s: Script, version: int) -> None:
    a = s.connect()
    name = s.id("new")
    for topic in (
        assigned(name, (0, [1])),
        assigned(name, (1, [1]), (0, [1])),
        assigned(name, (0, [1]), (0, [1])),
        assigned(name, (0, [1]), (2, [1])),
        assigned(name, (1, [1])),
        assigned(name, (-1, [1])),
        assigned(name, (0, [])),
        assigned(name, (0, [1, 1])),
        assigned(name, (0, [2])),
        assigned(name, (0, [-1])),
        assigned(name, (0, [1]), num_partitions=1),
        assigned(name, (0, [1]), replication_factor=1),
    ):
        create(a, version, topic)


@scenario(version=every(ApiKey.CREATE_TOPICS))
def settings_of_new_topics(s: Script, version: int) -> None:
    a = s.connect()
    name = s.id("new")
    for topic in (
        configured(name, retention_ms="5", compression_type="lz4"),
        configured(name, retention_ms=" 5 "),
        configured(name, foo="1"),
        configured(name, retention_ms=None),
        configured(name, retention_ms="x"),
        configured(name, retention_ms="-2"),
        configured(name, retention_ms=""),
        configured(name, cleanup_policy="nothing"),
        configured(name, cleanup_policy="compact,delete"),
        configured(name, min_compaction_lag_ms="9", max_compaction_lag_ms="5"),
        configured("a b", retention_ms="x"),
    ):
        create(a, version, topic)


@scenario(version=every(ApiKey.CREATE_TOPICS))
def the_same_new_topic_twice(s: Script, version: int) -> None:
    a = s.connect()
    one, two = new_topic(s.id("one")), new_topic(s.id("two"))
    create(a, version, one, one, validate_only=False)
    create(a, version, one, two, one, validate_only=False)


@scenario(version=every(ApiKey.CREATE_PARTITIONS))
def more_partitions(s: Script, version: int) -> None:
    a = s.connect()
    have_topic(s, a, "t", 2)
    for count, assignments in (
        (3, None),
        (3, []),
        (3, [[1]]),
        (4, [[1]]),
        (3, [[1], [1]]),
        (3, [[]]),
        (3, [[2]]),
        (3, [[1, 1]]),
        (2, None),
        (2, [[1]]),
        (1, None),
        (0, None),
        (-1, None),
        (10_002, None),
    ):
        rows = None if assignments is None else [{"broker_ids": brokers} for brokers in assignments]
        wanted = [{"name": s.id("t"), "count": count, "assignments": rows}]
        a.ask(ApiKey.CREATE_PARTITIONS, version, topics=wanted, timeout_ms=30_000, validate_only=True)


@scenario(count=[10_003, INT32_MAX])
def too_many_new_partitions(s: Script, count: int) -> None:
    a = s.connect()
    have_topic(s, a, "t", 2)
    wanted = [{"name": s.id("t"), "count": count, "assignments": None}]
    a.ask(ApiKey.CREATE_PARTITIONS, topics=wanted, timeout_ms=30_000, validate_only=True)


@scenario(version=every(ApiKey.CREATE_PARTITIONS))
def more_partitions_of_other_topics(s: Script, version: int) -> None:
    a = s.connect()
    for name in ("", "a b", s.id("lost"), "x" * 250):
        wanted = [{"name": name, "count": 3, "assignments": None}]
        a.ask(ApiKey.CREATE_PARTITIONS, version, topics=wanted, timeout_ms=30_000, validate_only=True)
    twice = [{"name": "apples", "count": count, "assignments": None} for count in (4, 5)]
    a.ask(ApiKey.CREATE_PARTITIONS, version, topics=twice, timeout_ms=30_000, validate_only=True)
    a.ask(ApiKey.CREATE_PARTITIONS, version, topics=[], timeout_ms=30_000, validate_only=True)


@scenario(version=every(ApiKey.DELETE_TOPICS, until=5))
def deleting_by_name(s: Script, version: int) -> None:
    a = s.connect()
    have_topic(s, a, "t", 1)
    names = [s.id("lost"), "a b"]
    for wanted in ([], names[:1], names[1:], [""]):
        a.ask(ApiKey.DELETE_TOPICS, version, topic_names=wanted, timeout_ms=30_000)
    a.ask(ApiKey.DELETE_TOPICS, version, topic_names=[s.id("t"), s.id("t")], timeout_ms=30_000)
    wait_until(lambda: known_partitions(a, s.id("t")) in (0, 1), what="an answer")


def named(name: str | None, topic_id: uuid.UUID | None = None) -> dict[str, Any]:
    """A topic of DeleteTopics from v6 on."""
    return {"name": name, "topic_id": topic_id}


@scenario()
def deleting_by_id(s: Script) -> None:
    a = s.connect()
    have_topic(s, a, "t", 1)
    topic_id = id_of(s, a, s.id("t"))
    for wanted in (
        [],
        [named(None, STRANGER)],
        [named(None)],
        [named(s.id("t"), topic_id)],
        [named(s.id("lost"))],
        [named("")],
        [named(None, topic_id)],
    ):
        a.ask(ApiKey.DELETE_TOPICS, topics=wanted, timeout_ms=30_000)
    wait_until(lambda: known_partitions(a, s.id("t")) == 0, what="the deletion")
    a.ask(ApiKey.DELETE_TOPICS, topics=[named(None, topic_id)], timeout_ms=30_000)


@scenario()
def a_topic_that_is_created_again(s: Script) -> None:
    a = s.connect()
    have_topic(s, a, "t", 2)
    before = id_of(s, a, s.id("t"))
    with s.quietly():
        a.ask(ApiKey.DELETE_TOPICS, 5, topic_names=[s.id("t")], timeout_ms=30_000)
        wait_until(lambda: known_partitions(a, s.id("t")) == 0, what="the deletion")
    have_topic(s, a, "t", 1)
    after = id_of(s, a, s.id("t"))
    s.note(f"the id is another: {before != after}")
    a.commit(topics=[{"name": "", "topic_id": before, "partitions": _one_offset(3)}])
    a.commit(topics=[{"name": "", "topic_id": after, "partitions": _one_offset(4)}])
    a.fetch_offsets(9, groups=[{"group_id": s.group, "topics": None, "member_id": None, "member_epoch": -1}])


def _one_offset(offset: int) -> list[dict[str, Any]]:
    return [
        {
            "partition_index": 0,
            "committed_offset": offset,
            "committed_leader_epoch": -1,
            "committed_metadata": "",
        }
    ]
