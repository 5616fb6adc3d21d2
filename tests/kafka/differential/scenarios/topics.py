# SPDX-License-Identifier: Apache-2.0
"""The apis about topics and the cluster, which clients of groups need: every version, right and wrong names."""

import uuid
from typing import Any

from protocol.apis import ApiKey
from tests.kafka.differential.catalogue import TIGHT, every, scenario
from tests.kafka.differential.ordinary import NO_TOPIC, commit_topic, fetch_group
from tests.kafka.differential.script import Link, Script
from tests.support.waiting import wait_until

STRANGER = uuid.UUID(int=9 << 64)


def new_topic(name: str, partitions: int = 1, factor: int = 1, **more: Any) -> dict[str, Any]:
    """A topic of CreateTopics."""
    fields: dict[str, Any] = {"assignments": [], "configs": [], **more}
    return {"name": name, "num_partitions": partitions, "replication_factor": factor, **fields}


def have_topic(s: Script, link: Link, name: str, partitions: int) -> None:
    """Create a topic of this scenario and wait until it is known."""
    with s.quietly():
        link.ask(ApiKey.CREATE_TOPICS, topics=[new_topic(s.id(name), partitions)], timeout_ms=30_000)
        wait_until(lambda: known_partitions(link, s.id(name)) == partitions, what=f"the topic {name}")
        wait_until(lambda: led_partitions(link, s.id(name), partitions), what=f"leaders of {name}")
    s.note(f"the topic {name} with {partitions} partitions")


def known_partitions(link: Link, topic: str) -> int:
    """How many partitions Metadata tells of, 0 for no topic."""
    with link.script.quietly():
        answer = link.ask(ApiKey.METADATA, 8, topics=[{"name": topic}], allow_auto_topic_creation=False)
    return len(answer.topics[0].partitions)


def led_partitions(link: Link, topic: str, partitions: int) -> bool:
    """Whether every partition of the topic answers: Kafka tells of a partition before it leads it."""
    wanted = [{"partition_index": i, "current_leader_epoch": -1, "timestamp": -2} for i in range(partitions)]
    with link.script.quietly():
        topics = [{"name": topic, "partitions": wanted}]
        answer = link.ask(ApiKey.LIST_OFFSETS, 8, replica_id=-1, isolation_level=0, topics=topics)
    return all(partition.error_code == 0 for partition in answer.topics[0].partitions)


# --- Metadata, DescribeCluster


@scenario(version=every(ApiKey.METADATA))
def metadata(s: Script, version: int) -> None:
    a = s.connect()
    asked = [["apples"], ["pears", "apples", "pears"]]
    if version >= 4:  # before, asking for a topic could create it
        asked.append(["plums", s.id("lost"), "apples"])
    for names in asked:
        topics = known_fields([{"name": name, "topic_id": None} for name in names], version)
        a.ask(ApiKey.METADATA, version, topics=topics, allow_auto_topic_creation=False)


@scenario(version=every(ApiKey.METADATA))
def metadata_that_creates_topics(s: Script, version: int) -> None:
    a = s.connect()
    topics = known_fields([{"name": s.id("new"), "topic_id": None}], version)
    with s.quietly():
        a.ask(ApiKey.METADATA, version, topics=topics, allow_auto_topic_creation=True)
        wait_until(lambda: known_partitions(a, s.id("new")), what="the topic")
    a.ask(ApiKey.METADATA, 8, topics=[{"name": s.id("new")}], allow_auto_topic_creation=False)


def known_fields(topics: list[dict[str, Any]], version: int) -> list[dict[str, Any]]:
    """A request's topics without ids before Metadata v10."""
    return topics if version >= 10 else [{"name": topic["name"]} for topic in topics]


@scenario(settings=TIGHT, version=every(ApiKey.METADATA))
def metadata_creates_no_topics_where_that_is_off(s: Script, version: int) -> None:
    a = s.connect()
    topics = known_fields([{"name": s.id("new"), "topic_id": None}], version)
    a.ask(ApiKey.METADATA, version, topics=topics, allow_auto_topic_creation=True)


@scenario(version=every(ApiKey.METADATA))
def metadata_of_everything(s: Script, version: int) -> None:
    a = s.connect()
    have_topic(s, a, "t", 2)
    have_topic(s, a, "u", 1)
    a.ask(ApiKey.METADATA, version, topics=None if version else [], allow_auto_topic_creation=False)


@scenario(version=every(ApiKey.METADATA))
def metadata_of_bad_names(s: Script, version: int) -> None:
    a = s.connect()
    for name in ("", ".", "a b", "x" * 250, "ü"):
        topics = known_fields([{"name": name, "topic_id": None}], version)
        a.ask(ApiKey.METADATA, version, topics=topics, allow_auto_topic_creation=False)


@scenario(version=every(ApiKey.METADATA, since=10))
def metadata_by_id(s: Script, version: int) -> None:
    a = s.connect()
    for topic in (
        {"name": None, "topic_id": s.topic_id("apples")},
        {"name": None, "topic_id": STRANGER},
        {"name": "pears", "topic_id": s.topic_id("apples")},
    ):
        a.ask(ApiKey.METADATA, version, topics=[topic], allow_auto_topic_creation=False)


@scenario(version=every(ApiKey.METADATA, since=10, until=11))
def metadata_of_no_name_before_ids_count(s: Script, version: int) -> None:
    unnamed = [{"name": None, "topic_id": None}]
    s.connect().ask(ApiKey.METADATA, version, topics=unnamed, allow_auto_topic_creation=False)


@scenario(differs="metadata-of-nothing-named", version=every(ApiKey.METADATA, since=12))
def metadata_of_neither_name_nor_id(s: Script, version: int) -> None:
    unnamed = [{"name": None, "topic_id": None}]
    s.connect().ask(ApiKey.METADATA, version, topics=unnamed, allow_auto_topic_creation=False)


@scenario(version=every(ApiKey.METADATA, since=8))
def metadata_with_operations(s: Script, version: int) -> None:
    a = s.connect()
    topics = known_fields([{"name": "plums", "topic_id": None}], version)
    a.ask(
        ApiKey.METADATA,
        version,
        topics=topics,
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=True,
        include_cluster_authorized_operations=True,
    )


@scenario(version=every(ApiKey.METADATA, since=1))
def metadata_of_nothing(s: Script, version: int) -> None:
    s.connect().ask(ApiKey.METADATA, version, topics=[])


@scenario(version=every(ApiKey.DESCRIBE_CLUSTER))
def the_cluster(s: Script, version: int) -> None:
    a = s.connect()
    a.ask(ApiKey.DESCRIBE_CLUSTER, version, include_cluster_authorized_operations=False)
    a.ask(ApiKey.DESCRIBE_CLUSTER, version, include_cluster_authorized_operations=True)
    if version >= 1:
        for endpoint_type in (0, 2, 3):
            a.ask(ApiKey.DESCRIBE_CLUSTER, version, endpoint_type=endpoint_type)


# --- CreateTopics, CreatePartitions, DeleteTopics


@scenario(version=every(ApiKey.CREATE_TOPICS))
def creating_topics(s: Script, version: int) -> None:
    a = s.connect()
    for name, partitions, factor in (
        ("one", 3, 1),
        ("two", 1, 1),
        ("one", 3, 1),
        ("three", 0, 1),
        ("four", 1, 2),
    ):
        topic = new_topic(s.id(name), partitions, factor)
        a.ask(ApiKey.CREATE_TOPICS, version, topics=[topic], timeout_ms=30_000, validate_only=False)
    a.ask(ApiKey.CREATE_TOPICS, version, topics=[new_topic("a b")], timeout_ms=30_000, validate_only=False)
    a.ask(ApiKey.CREATE_TOPICS, version, topics=[], timeout_ms=30_000, validate_only=False)


@scenario(version=every(ApiKey.CREATE_TOPICS))
def creating_topics_only_to_see(s: Script, version: int) -> None:
    a = s.connect()
    for topic in (new_topic(s.id("new"), 2), new_topic("apples"), new_topic(s.id("new"), -2)):
        a.ask(ApiKey.CREATE_TOPICS, version, topics=[topic], timeout_ms=30_000, validate_only=True)


@scenario(differs="min-insync-replicas")
def settings_of_a_new_topic(s: Script) -> None:
    a = s.connect()
    topics = [new_topic(s.id("new"))]
    a.ask(ApiKey.CREATE_TOPICS, topics=topics, timeout_ms=30_000, validate_only=True, as_it_comes=True)


@scenario(version=every(ApiKey.CREATE_PARTITIONS))
def creating_partitions(s: Script, version: int) -> None:
    a = s.connect()
    have_topic(s, a, "t", 2)
    for name, count in ((s.id("t"), 2), (s.id("t"), 1), (s.id("t"), 4), (NO_TOPIC, 3)):
        wanted = [{"name": name, "count": count, "assignments": None}]
        a.ask(ApiKey.CREATE_PARTITIONS, version, topics=wanted, timeout_ms=30_000, validate_only=False)
    wait_until(lambda: known_partitions(a, s.id("t")) == 4, what="more partitions")


@scenario(version=every(ApiKey.DELETE_TOPICS))
def deleting_topics(s: Script, version: int) -> None:
    a = s.connect()
    have_topic(s, a, "t", 1)
    for name in (NO_TOPIC, s.id("t"), ""):
        named = {"topics": [{"name": name, "topic_id": None}]} if version >= 6 else {"topic_names": [name]}
        a.ask(ApiKey.DELETE_TOPICS, version, timeout_ms=30_000, **named)
    wait_until(lambda: known_partitions(a, s.id("t")) == 0, what="the deletion")


@scenario()
def offsets_of_a_deleted_topic(s: Script) -> None:
    a = s.connect()
    have_topic(s, a, "t", 2)
    a.commit(9, topics=[commit_topic(s, s.id("t"), (0, 5), (1, 6)), commit_topic(s, "apples", (0, 7))])
    with s.quietly():
        a.ask(ApiKey.DELETE_TOPICS, 5, topic_names=[s.id("t")], timeout_ms=30_000)
        wait_until(lambda: known_partitions(a, s.id("t")) == 0, what="the deletion")
    s.note("the topic t is deleted")
    a.commit(9, topics=[commit_topic(s, s.id("t"), (0, 5))])

    def offsets_are_gone() -> bool:
        with s.quietly():
            answer = a.fetch_offsets(9, groups=[fetch_group(s.group, None)])
        return len(answer.groups[0].topics) == 1

    wait_until(offsets_are_gone, what="the offsets to go")
    a.fetch_offsets(9, groups=[fetch_group(s.group, None)])


@scenario()
def offsets_of_new_partitions(s: Script) -> None:
    a = s.connect()
    have_topic(s, a, "t", 1)
    a.commit(9, topics=[commit_topic(s, s.id("t"), (0, 5), (1, 6))])
    with s.quietly():
        wanted = [{"name": s.id("t"), "count": 2, "assignments": None}]
        a.ask(ApiKey.CREATE_PARTITIONS, topics=wanted, timeout_ms=30_000, validate_only=False)
        wait_until(lambda: known_partitions(a, s.id("t")) == 2, what="more partitions")
    s.note("the topic t has one more partition")
    a.commit(9, topics=[commit_topic(s, s.id("t"), (0, 5), (1, 6))])


# --- what is said of topics without data


def list_offsets(link: Link, version: int, topic: str, timestamp: int, *partitions: int) -> None:
    """ListOffsets of some partitions of one topic, as a consumer asks: with the leader epoch that it knows."""
    wanted = [
        {"partition_index": index, "current_leader_epoch": 0, "timestamp": timestamp} for index in partitions
    ]
    topics = [{"name": topic, "partitions": wanted}]
    link.ask(ApiKey.LIST_OFFSETS, version, replica_id=-1, isolation_level=0, topics=topics)


@scenario(version=every(ApiKey.LIST_OFFSETS))
def listing_offsets(s: Script, version: int) -> None:
    a = s.connect()
    have_topic(s, a, "t", 3)
    for timestamp in (-1, -2):
        list_offsets(a, version, s.id("t"), timestamp, 0, 2, 9)
    list_offsets(a, version, NO_TOPIC, -1, 0)


def fetch(link: Link, version: int, topic: str, topic_id: uuid.UUID | None, index: int, offset: int) -> None:
    """Fetch of one partition, without waiting."""
    partition = {
        "partition": index,
        "current_leader_epoch": -1,
        "fetch_offset": offset,
        "last_fetched_epoch": -1,
        "log_start_offset": -1,
        "partition_max_bytes": 1_000,
    }
    link.ask(
        ApiKey.FETCH,
        version,
        replica_id=-1,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1_000,
        isolation_level=0,
        session_id=0,
        session_epoch=-1,
        topics=[{"topic": topic, "topic_id": topic_id, "partitions": [partition]}],
        forgotten_topics_data=[],
        rack_id="",
    )


def id_of(s: Script, link: Link, topic: str) -> uuid.UUID:
    """The id that the server gave to a topic."""
    with s.quietly():
        answer = link.ask(ApiKey.METADATA, 12, topics=[{"name": topic, "topic_id": None}])
    topic_id: uuid.UUID = answer.topics[0].topic_id
    s.names.know_topic(topic_id, topic)
    return topic_id


@scenario(version=every(ApiKey.FETCH))
def fetching(s: Script, version: int) -> None:
    a = s.connect()
    have_topic(s, a, "t", 1)
    topic_id = id_of(s, a, s.id("t"))
    for index, offset in ((0, 0), (0, -1), (9, 0)):
        fetch(a, version, s.id("t"), topic_id, index, offset)
    fetch(a, version, NO_TOPIC, STRANGER, 0, 0)


@scenario(differs="ends-of-partitions")
def where_a_partition_ends(s: Script) -> None:
    a = s.connect()
    have_topic(s, a, "t", 2)
    a.commit(9, topics=[commit_topic(s, s.id("t"), (0, 5))])
    list_offsets(a, 8, s.id("t"), -1, 0, 1)
    list_offsets(a, 8, s.id("t"), -2, 0, 1)
    fetch(a, 12, s.id("t"), None, 0, 5)


@scenario(version=every(ApiKey.DESCRIBE_CONFIGS))
def describing_configs(s: Script, version: int) -> None:
    a = s.connect()
    for kind, name, keys in (
        (2, "apples", ["segment.ms", "nope", "retention.ms"]),
        (2, NO_TOPIC, None),
        (2, "a b", None),
        (4, "1", ["group.min.session.timeout.ms"]),
        (4, "7", None),
        (4, "x", None),
    ):
        resources = [{"resource_type": kind, "resource_name": name, "configuration_keys": keys}]
        a.ask(
            ApiKey.DESCRIBE_CONFIGS,
            version,
            resources=resources,
            include_synonyms=False,
            include_documentation=False,
        )
