# SPDX-License-Identifier: Apache-2.0
"""ConsumerGroupHeartbeat: refused where there are no groups of KIP-848, whatever a request says."""

from typing import Any
from uuid import UUID

from protocol.apis import ApiKey
from tests.kafka.differential.catalogue import CLASSIC, every, scenario
from tests.kafka.differential.groups import stable_group
from tests.kafka.differential.script import Script

HEARTBEAT = ApiKey.CONSUMER_GROUP_HEARTBEAT
INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
LONG = "x" * 1_000
FIELDS: dict[str, list[Any]] = {
    "group_id": ["", LONG],
    "member_id": ["", LONG],
    "member_epoch": [INT32_MIN, -2, -1, 1, INT32_MAX],
    "instance_id": ["", "i"],
    "rack_id": ["", "a"],
    "rebalance_timeout_ms": [INT32_MIN, -1, INT32_MAX],
    "subscribed_topic_names": [None, [], [""], ["apples", "apples"]],
    "server_assignor": ["", "uniform", "unknown"],
    "topic_partitions": [
        None,
        [{"topic_id": None, "partitions": []}],
        [{"topic_id": UUID(int=1), "partitions": [INT32_MIN, 0, INT32_MAX]}],
        [{"topic_id": UUID(int=2), "partitions": [0]}],
    ],
}


@scenario(settings=CLASSIC, version=every(HEARTBEAT))
def of_a_member_that_joins(s: Script, version: int) -> None:
    a = s.connect()
    a.ask(HEARTBEAT, version)
    a.describe()


@scenario(differs="apis-and-features", version=every(HEARTBEAT))
def where_kafka_has_groups_of_kip_848(s: Script, version: int) -> None:
    s.connect().ask(HEARTBEAT, version)


@scenario(settings=CLASSIC, version=every(HEARTBEAT), field=list(FIELDS))
def with_each_field(s: Script, version: int, field: str) -> None:
    a = s.connect()
    for value in FIELDS[field]:
        a.ask(HEARTBEAT, version, **{field: value})


@scenario(
    settings=CLASSIC, version=every(HEARTBEAT, since=1), pattern={"none": "", "good": "a.*", "bad": "("}
)
def with_a_pattern_of_topics(s: Script, version: int, pattern: str) -> None:
    s.connect().ask(HEARTBEAT, version, subscribed_topic_names=None, subscribed_topic_regex=pattern)


@scenario(settings=CLASSIC, version=every(HEARTBEAT))
def in_a_classic_group(s: Script, version: int) -> None:
    group = stable_group(s)
    group.outsider.ask(HEARTBEAT, version)
    group.outsider.ask(HEARTBEAT, version, member_id=group.leader.id)
    group.leader.heartbeat()
