# SPDX-License-Identifier: Apache-2.0
"""Fields that the other modules leave at what is ordinary: each at its limits, and with a wrong value.

tests/kafka/differential/test_coverage.py counts the values of every field of every request, and says which lack some.
"""

from typing import Any

from protocol.apis import ApiKey
from tests.kafka.differential.catalogue import every, scenario
from tests.kafka.differential.groups import stable_group
from tests.kafka.differential.ordinary import commit_topic, delete_topic, fetch_group, fetch_topic
from tests.kafka.differential.scenarios.leave_group import leaving
from tests.kafka.differential.scenarios.offset_fetch import asking, have_offsets
from tests.kafka.differential.scenarios.produce import PRODUCE, batch_for
from tests.kafka.differential.scenarios.produce import request as produced
from tests.kafka.differential.scenarios.reads import EPOCH, ask_fetch, ask_offsets
from tests.kafka.differential.scenarios.topics import STRANGER, have_topic, id_of, known_fields, new_topic
from tests.kafka.differential.script import Script

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
LONG = "x" * 1_000
ODD = {"blank": " ", "accents": "grüße", "emoji": "\U0001f600", "long": LONG}
LONGEST = "x" * 32_767


# --- names in the apis of groups


@scenario(name=ODD)
def ids_of_groups(s: Script, name: str) -> None:
    _ask_of_group(s, s.id(name))


@scenario(differs="names-that-no-answer-can-hold")
def the_longest_id_of_a_group(s: Script) -> None:
    _ask_of_group(s, s.id(LONGEST)[: len(LONGEST)])


def _ask_of_group(s: Script, group_id: str) -> None:
    """While nobody has made it, and once it has offsets."""
    a = s.connect()
    for known in (False, True):
        a.ask(ApiKey.FIND_COORDINATOR, 3, key=group_id, key_type=0)
        a.ask(ApiKey.FIND_COORDINATOR, coordinator_keys=[group_id], key_type=0)
        a.delete_offsets(group_id=group_id, topics=[delete_topic("apples", 1)])
        for version in (1, 5, 7, 8):
            topics = [fetch_topic(s, "apples", 0)]
            a.fetch_offsets(version, **asking(s, version, topics, group_id))
        a.describe(groups=[group_id])
        a.delete_groups(groups_names=[group_id])
        if not known:
            a.commit(group_id=group_id)


@scenario(name=ODD)
def ids_of_members(s: Script, name: str) -> None:
    group = stable_group(s, instances=["i", None])
    c = group.outsider
    c.join(member_id=name)
    asked: list[dict[str, Any]] = [{"member_id": name}, {"member_id": "", "group_instance_id": name}]
    for more in asked:
        c.sync(generation_id=2, **more)
        c.heartbeat(generation_id=2, **more)
        c.commit(generation_id_or_member_epoch=2, **more)
        c.leave(members=[{**leaving(), **more}])
    c.leave(2, member_id=name)
    c.sync(generation_id=2, member_id=name, assignments=[{"member_id": name, "assignment": b"x"}])
    topics = [fetch_topic(s, "apples", 0)]
    c.fetch_offsets(groups=[fetch_group(s.group, topics, name, 2)])


@scenario(differs="names-that-no-answer-can-hold", slow=True)
def the_longest_ids_of_members(s: Script) -> None:
    soon: dict[str, Any] = {"rebalance_timeout_ms": 3_000}
    group = stable_group(s, **soon)
    c = group.outsider
    c.heartbeat(generation_id=2, member_id=LONGEST)
    c.join(group_instance_id=LONGEST, **soon)
    c.heartbeat(generation_id=2, group_instance_id=LONGEST)
    c.describe()


@scenario(epoch=[INT32_MIN, INT32_MAX])
def member_epochs(s: Script, epoch: int) -> None:
    group = stable_group(s)
    topics = [fetch_topic(s, "apples", 0)]
    for version in (9, 10):
        for member_id in (None, "", "nobody", group.leader.id):
            group.outsider.fetch_offsets(version, groups=[fetch_group(s.group, topics, member_id, epoch)])


BAD_TOPICS = {"empty": "", "a blank": "a b", "dots": "..", "long": "x" * 250, "accents": "ü"}


@scenario(name=BAD_TOPICS)
def names_of_topics_with_offsets(s: Script, name: str) -> None:
    a = have_offsets(s)
    a.commit(9, topics=[commit_topic(s, name, (0, 1)), commit_topic(s, "plums", (0, 2))])
    a.fetch_offsets(9, groups=[fetch_group(s.group, [fetch_topic(s, name, 0), fetch_topic(s, "plums", 0)])])
    a.delete_offsets(topics=[delete_topic(name, 0), delete_topic("plums", 0)])


# --- the apis of topics


def _configs_of(kind: int, name: str) -> dict[str, Any]:
    resource = {"resource_type": kind, "resource_name": name, "configuration_keys": None}
    return {"resources": [resource], "include_synonyms": False, "include_documentation": False}


LONGEST_NAMES: dict[str, tuple[ApiKey, int, dict[str, Any]]] = {
    f"{told} v{version}": (api, version, fields)
    for told, api, versions, fields in (
        ("Metadata", ApiKey.METADATA, (8, 12), {"topics": [{"name": LONGEST}]}),
        (
            "CreateTopics",
            ApiKey.CREATE_TOPICS,
            (4, 7),
            {"topics": [new_topic(LONGEST)], "timeout_ms": 30_000},
        ),
        (
            "CreatePartitions",
            ApiKey.CREATE_PARTITIONS,
            (1, 3),
            {"topics": [{"name": LONGEST, "count": 3, "assignments": None}], "timeout_ms": 30_000},
        ),
        ("DeleteTopics", ApiKey.DELETE_TOPICS, (3, 5), {"topic_names": [LONGEST], "timeout_ms": 30_000}),
        ("configs of a topic", ApiKey.DESCRIBE_CONFIGS, (3, 4), _configs_of(2, LONGEST)),
        ("configs of a node", ApiKey.DESCRIBE_CONFIGS, (3, 4), _configs_of(4, LONGEST)),
        ("a share group", ApiKey.FIND_COORDINATOR, (6,), {"coordinator_keys": [LONGEST], "key_type": 2}),
    )
    for version in versions
}


NOT_SAID_BACK = ("Metadata", "CreatePartitions", "DeleteTopics", "a share group")
"""Where no text of an error has the name in it."""


@scenario(request={told: each for told, each in LONGEST_NAMES.items() if told.startswith(NOT_SAID_BACK)})
def the_longest_names(s: Script, request: tuple[ApiKey, int, dict[str, Any]]) -> None:
    _ask_and_go_on(s, *request)


@scenario(
    differs="names-that-no-answer-can-hold",
    request={told: each for told, each in LONGEST_NAMES.items() if not told.startswith(NOT_SAID_BACK)},
)
def the_longest_names_said_back(s: Script, request: tuple[ApiKey, int, dict[str, Any]]) -> None:
    _ask_and_go_on(s, *request)


def _ask_and_go_on(s: Script, api: ApiKey, version: int, fields: dict[str, Any]) -> None:
    a = s.connect()
    a.ask(api, version, **fields)
    a.heartbeat()


CHANGES: dict[str, tuple[ApiKey, dict[str, Any]]] = {
    "CreateTopics": (ApiKey.CREATE_TOPICS, {"topics": [new_topic("a b")], "validate_only": True}),
    "CreatePartitions": (
        ApiKey.CREATE_PARTITIONS,
        {"topics": [{"name": "a b", "count": 3, "assignments": None}], "validate_only": True},
    ),
    "DeleteTopics": (ApiKey.DELETE_TOPICS, {"topics": [{"name": "a b", "topic_id": None}]}),
}


@scenario(change=CHANGES)
def changes_that_may_take_long(s: Script, change: tuple[ApiKey, dict[str, Any]]) -> None:
    api, fields = change
    s.connect().ask(api, timeout_ms=INT32_MAX, **fields)


@scenario(differs="timeouts-of-topic-changes", change=CHANGES)
def changes_that_may_take_no_time(s: Script, change: tuple[ApiKey, dict[str, Any]]) -> None:
    api, fields = change
    for timeout_ms in (-1, INT32_MIN):
        s.connect().ask(api, timeout_ms=timeout_ms, **fields)


@scenario(version=every(ApiKey.DESCRIBE_CLUSTER, since=2), fenced=[False, True])
def fenced_brokers(s: Script, version: int, fenced: bool) -> None:
    a = s.connect()
    for endpoint_type in (1, 2):
        a.ask(ApiKey.DESCRIBE_CLUSTER, version, endpoint_type=endpoint_type, include_fenced_brokers=fenced)


@scenario(version=every(ApiKey.METADATA, since=8), cluster=[False, True], topic=[False, True])
def operations_that_are_asked_for(s: Script, version: int, cluster: bool, topic: bool) -> None:
    s.connect().ask(
        ApiKey.METADATA,
        version,
        topics=known_fields([{"name": "plums", "topic_id": None}], version),
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=topic,
        include_cluster_authorized_operations=cluster,
    )


@scenario(version=every(ApiKey.DESCRIBE_CONFIGS))
def documentation(s: Script, version: int) -> None:
    keys = ["retention.ms", "segment.ms"]
    s.connect().ask(
        ApiKey.DESCRIBE_CONFIGS,
        version,
        resources=[{"resource_type": 2, "resource_name": "apples", "configuration_keys": keys}],
        include_synonyms=False,
        include_documentation=True,
    )


# --- ListOffsets, Fetch, Produce


@scenario(version=every(ApiKey.LIST_OFFSETS, since=10), timeout_ms=[INT32_MIN, -1, 0, INT32_MAX])
def timeouts_of_listing_offsets(s: Script, version: int, timeout_ms: int) -> None:
    a = s.connect()
    have_topic(s, a, "t", 1)
    for timestamp in (-1, 0):
        ask_offsets(a, version, s.id("t"), (0, EPOCH, timestamp), timeout_ms=timeout_ms)


OF_FETCH: dict[str, list[dict[str, Any]]] = {
    "waits": [{"max_wait_ms": wait} for wait in (INT32_MIN, -1, 1, INT32_MAX)],
    "sizes": [{"min_bytes": size} for size in (INT32_MIN, INT32_MAX)],
    "most bytes": [{"max_bytes": size} for size in (INT32_MIN, INT32_MAX)],
    "racks": [{"rack_id": rack} for rack in ("", "a", LONG)],
    "replicas": [{"replica_id": replica} for replica in (-3, -2, 0, 1, INT32_MAX)],
}


@scenario(version=every(ApiKey.FETCH), of=OF_FETCH)
def fields_of_a_fetch(s: Script, version: int, of: list[dict[str, Any]]) -> None:
    a = s.connect()
    have_topic(s, a, "t", 1)
    topic_id = id_of(s, a, s.id("t"))
    for more in of:
        # whether a fetch waits is not the question here: partitions that are not there are answered at once
        ask_fetch(a, version, s.id("t"), topic_id, {"partition": 9}, **more)
        if "max_wait_ms" not in more:
            ask_fetch(a, version, s.id("t"), topic_id, {}, **more)


@scenario(differs="unknown-isolation-levels", version=every(ApiKey.FETCH), level=[-128, -1, 2, 127])
def unknown_isolation_levels_of_a_fetch(s: Script, version: int, level: int) -> None:
    a = s.connect()
    have_topic(s, a, "t", 1)
    ask_fetch(a, version, s.id("t"), id_of(s, a, s.id("t")), {}, isolation_level=level)


@scenario(version=every(ApiKey.FETCH, since=12), epoch=[INT32_MIN, -2, 0])
def epochs_that_were_fetched_last(s: Script, version: int, epoch: int) -> None:
    _fetch_after(s, version, epoch)


@scenario(differs="ends-of-partitions", version=every(ApiKey.FETCH, since=12), epoch=[1, INT32_MAX])
def epochs_that_cannot_have_been_fetched(s: Script, version: int, epoch: int) -> None:
    _fetch_after(s, version, epoch)


def _fetch_after(s: Script, version: int, epoch: int) -> None:
    a = s.connect()
    have_topic(s, a, "t", 1)
    topic_id = id_of(s, a, s.id("t"))
    ask_fetch(a, version, s.id("t"), topic_id, {"last_fetched_epoch": epoch})


@scenario(version=every(ApiKey.FETCH, since=7))
def topics_to_forget(s: Script, version: int) -> None:
    a = s.connect()
    have_topic(s, a, "t", 1)
    topic_id = id_of(s, a, s.id("t"))
    for name, its_id, partitions in (
        (s.id("t"), topic_id, [0]),
        (s.id("lost"), STRANGER, [0, 7]),
        ("", None, []),
    ):
        forgotten = [{"topic": name, "topic_id": its_id, "partitions": partitions}]
        ask_fetch(a, version, s.id("t"), topic_id, {}, forgotten_topics_data=forgotten)


@scenario(version=every(PRODUCE), timeout_ms=[INT32_MIN, 0, INT32_MAX])
def timeouts_of_producing(s: Script, version: int, timeout_ms: int) -> None:
    a = s.connect()
    asked = produced(1, batch_for("apples", s.topic_id("apples"), 3))
    a.ask(PRODUCE, version, **{**asked, "timeout_ms": timeout_ms})


@scenario(version=every(PRODUCE), records={"null": None, "none": b"", "nonsense": b"nonsense"})
def records_for_what_is_not_there(s: Script, version: int, records: bytes | None) -> None:
    a = s.connect()
    for topic in (batch_for("apples", s.topic_id("apples"), 3), batch_for(s.id("lost"), STRANGER, 0)):
        topic["partition_data"][0]["records"] = records
        a.ask(PRODUCE, version, **produced(1, topic))


@scenario(version=every(PRODUCE))
def nothing_and_nobody_waits(s: Script, version: int) -> None:
    a = s.connect()
    a.send(PRODUCE, version, **produced(0))
    a.heartbeat()
    a.send(PRODUCE, version, **produced(0, {**batch_for(s.id("lost"), STRANGER, 0), "partition_data": []}))
    a.heartbeat()
