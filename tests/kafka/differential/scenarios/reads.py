# SPDX-License-Identifier: Apache-2.0
"""ListOffsets, Fetch and DescribeConfigs: each field with what is ordinary, at its limits, and wrong."""

from typing import Any

from protocol.apis import ApiKey
from tests.kafka.differential.catalogue import every, scenario
from tests.kafka.differential.ordinary import NO_TOPIC
from tests.kafka.differential.scenarios.topics import STRANGER, have_topic, id_of
from tests.kafka.differential.script import Link, Script

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
EPOCH = 0
"""The leader epoch of new partitions. Consumers tell it; without it, it is a tool that asks."""


def ask_offsets(link: Link, version: int, topic: str, *partitions: tuple[int, int, int], **more: Any) -> None:
    """ListOffsets of (partition, leader epoch, timestamp)."""
    rows = [
        {"partition_index": index, "current_leader_epoch": epoch, "timestamp": timestamp}
        for index, epoch, timestamp in partitions
    ]
    fields = {"replica_id": -1, "isolation_level": 0, "timeout_ms": 1_000, **more}
    link.ask(ApiKey.LIST_OFFSETS, version, topics=[{"name": topic, "partitions": rows}], **fields)


@scenario(version=every(ApiKey.LIST_OFFSETS))
def timestamps(s: Script, version: int) -> None:
    a = s.connect()
    have_topic(s, a, "t", 1)
    for timestamp in (-1, -2, -3, -4, -5, -6, -7, 0, 1, INT64_MAX, INT64_MIN):
        ask_offsets(a, version, s.id("t"), (0, EPOCH, timestamp))


@scenario(version=every(ApiKey.LIST_OFFSETS, since=4))
def leader_epochs(s: Script, version: int) -> None:
    a = s.connect()
    have_topic(s, a, "t", 1)
    for epoch in (INT32_MIN, -2, 0, 1, INT32_MAX):
        ask_offsets(a, version, s.id("t"), (0, epoch, -1))


@scenario(differs="ends-of-partitions", version=every(ApiKey.LIST_OFFSETS, since=4))
def tools_that_list_offsets(s: Script, version: int) -> None:
    a = s.connect()
    have_topic(s, a, "t", 1)
    for timestamp in (-2, -1, 0, INT64_MAX):
        ask_offsets(a, version, s.id("t"), (0, -1, timestamp))


@scenario(version=every(ApiKey.LIST_OFFSETS))
def topics_named_again(s: Script, version: int) -> None:
    a = s.connect()
    have_topic(s, a, "t", 3)
    rows = [{"partition_index": index, "current_leader_epoch": EPOCH, "timestamp": -1} for index in range(3)]
    topics = [{"name": s.id("t"), "partitions": [rows[index] for index in of]} for of in ([0, 1], [1, 2])]
    a.ask(ApiKey.LIST_OFFSETS, version, topics=topics, replica_id=-1, isolation_level=0)


@scenario(version=every(ApiKey.LIST_OFFSETS))
def partitions_and_topics(s: Script, version: int) -> None:
    a = s.connect()
    have_topic(s, a, "t", 2)
    ask_offsets(a, version, s.id("t"))
    ask_offsets(a, version, s.id("t"), (1, EPOCH, -1), (7, EPOCH, -1), (-1, EPOCH, -1))
    ask_offsets(a, version, s.id("t"), (1, EPOCH, -1), (1, EPOCH, -2), (0, EPOCH, -1))
    ask_offsets(a, version, NO_TOPIC, (0, EPOCH, -1))
    ask_offsets(a, version, "a b", (0, EPOCH, -1))
    a.ask(ApiKey.LIST_OFFSETS, version, topics=[], replica_id=-1, isolation_level=0)


@scenario(version=every(ApiKey.LIST_OFFSETS, since=2), level=[0, 1])
def isolation_levels(s: Script, version: int, level: int) -> None:
    a = s.connect()
    have_topic(s, a, "t", 1)
    ask_offsets(a, version, s.id("t"), (0, EPOCH, -1), isolation_level=level)


@scenario(differs="unknown-isolation-levels", level=[-1, 2])
def unknown_isolation_levels(s: Script, level: int) -> None:
    a = s.connect()
    have_topic(s, a, "t", 1)
    ask_offsets(a, 8, s.id("t"), (0, EPOCH, -1), isolation_level=level)


@scenario(replica=[-2, 0, 1, 7])
def replicas_that_list_offsets(s: Script, replica: int) -> None:
    a = s.connect()
    have_topic(s, a, "t", 1)
    ask_offsets(a, 8, s.id("t"), (0, EPOCH, -1), replica_id=replica)


# --- Fetch


def ask_fetch(
    link: Link, version: int, topic: str, topic_id: Any, *rows: dict[str, Any], **more: Any
) -> None:
    """Fetch of partitions of one topic, without waiting."""
    ordinary = {
        "partition": 0,
        "current_leader_epoch": -1,
        "fetch_offset": 0,
        "last_fetched_epoch": -1,
        "log_start_offset": -1,
        "partition_max_bytes": 1_000,
    }
    fields = {
        "replica_id": -1,
        "max_wait_ms": 0,
        "min_bytes": 0,
        "max_bytes": 1_000,
        "isolation_level": 0,
        "session_id": 0,
        "session_epoch": -1,
        "forgotten_topics_data": [],
        "rack_id": "",
        **more,
    }
    partitions = [{**ordinary, **row} for row in rows]
    link.ask(
        ApiKey.FETCH,
        version,
        topics=[{"topic": topic, "topic_id": topic_id, "partitions": partitions}] if partitions else [],
        **fields,
    )


@scenario(version=every(ApiKey.FETCH))
def fields_of_a_fetch(s: Script, version: int) -> None:
    a = s.connect()
    have_topic(s, a, "t", 2)
    topic_id = id_of(s, a, s.id("t"))

    def ask(*rows: dict[str, Any], **more: Any) -> None:
        ask_fetch(a, version, s.id("t"), topic_id, *rows, **more)

    ask({}, {"partition": 1}, {"partition": 9}, {"partition": -1})
    ask({"fetch_offset": INT64_MIN}, {"partition": 1, "fetch_offset": -1})
    ask({"partition_max_bytes": 0}, {"partition": 1, "partition_max_bytes": -1})
    ask({"log_start_offset": 5})
    for more in ({"max_bytes": 0}, {"max_bytes": -1}, {"min_bytes": -1}, {"isolation_level": 1}):
        ask({}, **more)
    ask()


@scenario(version=every(ApiKey.FETCH, since=9))
def leader_epochs_of_a_fetch(s: Script, version: int) -> None:
    a = s.connect()
    have_topic(s, a, "t", 1)
    topic_id = id_of(s, a, s.id("t"))
    for epoch in (INT32_MIN, -2, -1, 0, 1, INT32_MAX):
        ask_fetch(a, version, s.id("t"), topic_id, {"current_leader_epoch": epoch})


@scenario(version=every(ApiKey.FETCH, since=7))
def sessions(s: Script, version: int) -> None:
    a = s.connect()
    have_topic(s, a, "t", 1)
    topic_id = id_of(s, a, s.id("t"))
    for session_id, epoch in ((0, -1), (7, -1), (7, 3), (0, 3), (7, INT32_MAX)):
        ask_fetch(a, version, s.id("t"), topic_id, {}, session_id=session_id, session_epoch=epoch)


@scenario(version=every(ApiKey.FETCH))
def fetches_of_what_is_not_there(s: Script, version: int) -> None:
    a = s.connect()
    ask_fetch(a, version, NO_TOPIC, STRANGER, {}, {"partition": 1})
    ask_fetch(a, version, "", None, {})


# --- DescribeConfigs


@scenario(version=every(ApiKey.DESCRIBE_CONFIGS))
def configs(s: Script, version: int) -> None:
    a = s.connect()
    have_topic(s, a, "t", 1)
    for kind, name, keys in (
        (2, s.id("t"), ["retention.ms"]),
        (2, s.id("t"), ["retention.ms", "retention.ms", "nope"]),
        (2, s.id("t"), []),
        (2, s.id("lost"), ["retention.ms"]),
        (2, "", None),
        (4, "1", ["num.partitions", "group.max.session.timeout.ms", "nope"]),
        (4, "01", ["num.partitions"]),
        (4, "-1", None),
        (0, "t", None),
        (1, "t", None),
        (3, "t", None),
        (64, "t", None),
        (-1, "t", None),
    ):
        for more in (False, True):
            a.ask(
                ApiKey.DESCRIBE_CONFIGS,
                version,
                resources=[{"resource_type": kind, "resource_name": name, "configuration_keys": keys}],
                include_synonyms=more,
                include_documentation=False,
            )
    a.ask(ApiKey.DESCRIBE_CONFIGS, version, resources=[], include_synonyms=False, include_documentation=False)


@scenario(differs="settings-of-the-node")
def settings_that_are_only_ours_or_only_kafkas(s: Script) -> None:
    a = s.connect()
    keys = ["segment.ms", "log.flush", "log.roll.ms"]
    a.ask(
        ApiKey.DESCRIBE_CONFIGS,
        resources=[{"resource_type": 4, "resource_name": "1", "configuration_keys": keys}],
        include_synonyms=False,
        include_documentation=False,
    )


@scenario(version=every(ApiKey.DESCRIBE_CONFIGS))
def several_resources(s: Script, version: int) -> None:
    a = s.connect()
    have_topic(s, a, "t", 1)
    rows = [(2, s.id("t")), (2, s.id("lost")), (2, s.id("t"))]
    a.ask(
        ApiKey.DESCRIBE_CONFIGS,
        version,
        resources=[
            {"resource_type": kind, "resource_name": name, "configuration_keys": ["retention.ms"]}
            for kind, name in rows
        ],
        include_synonyms=False,
        include_documentation=False,
    )
