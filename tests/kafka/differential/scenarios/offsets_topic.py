# SPDX-License-Identifier: Apache-2.0
"""Fetch and ListOffsets of `__consumer_offsets`: what does not depend on what other scenarios commit meanwhile.

What is in the log is compared in tests/kafka/test_offsets_topic.py.
"""

from typing import Any

from protocol.apis import ApiKey
from tests.kafka.differential.catalogue import every, scenario
from tests.kafka.differential.scenarios.reads import (
    INT32_MAX,
    INT32_MIN,
    INT64_MAX,
    INT64_MIN,
    ask_fetch,
    ask_offsets,
)
from tests.kafka.differential.scenarios.topics import id_of
from tests.kafka.differential.script import Link, Script
from tests.support.raw import wait_for_coordinator

OFFSETS_TOPIC = "__consumer_offsets"
PARTITIONS = 50


def connect(s: Script) -> Link:
    """Kafka makes the topic when the first coordinator is looked for."""
    wait_for_coordinator(s.server.bootstrap, s.group)
    return s.connect()


@scenario(version=every(ApiKey.FETCH))
def fetches_that_find_nothing(s: Script, version: int) -> None:
    a = connect(s)
    topic_id = id_of(s, a, OFFSETS_TOPIC)

    def ask(*rows: dict[str, Any], **more: Any) -> None:
        ask_fetch(a, version, OFFSETS_TOPIC, topic_id, *rows, **more)

    ask({"partition": PARTITIONS}, {"partition": -1}, {"partition": INT32_MAX})
    for offset in (INT64_MAX, -1, INT64_MIN):
        for level in (0, 1):
            ask({"fetch_offset": offset}, isolation_level=level)
    ask({"fetch_offset": INT64_MAX}, max_wait_ms=INT32_MAX, min_bytes=1)
    ask({"partition": PARTITIONS}, max_wait_ms=INT32_MAX, min_bytes=1)


@scenario(version=every(ApiKey.FETCH, since=9))
def wrong_leader_epochs(s: Script, version: int) -> None:
    a = connect(s)
    topic_id = id_of(s, a, OFFSETS_TOPIC)
    for epoch in (1, INT32_MAX):
        ask_fetch(
            a, version, OFFSETS_TOPIC, topic_id, {"current_leader_epoch": epoch, "fetch_offset": INT64_MAX}
        )


@scenario(version=every(ApiKey.FETCH, since=12))
def epochs_that_were_never_written(s: Script, version: int) -> None:
    a = connect(s)
    topic_id = id_of(s, a, OFFSETS_TOPIC)
    for epoch, offset in ((1, 0), (INT32_MAX, 0), (0, -1), (1, INT64_MAX)):
        row = {"last_fetched_epoch": epoch, "fetch_offset": offset}
        ask_fetch(a, version, OFFSETS_TOPIC, topic_id, row)


@scenario(version=every(ApiKey.FETCH, since=7))
def sessions_with_records(s: Script, version: int) -> None:
    a = connect(s)
    topic_id = id_of(s, a, OFFSETS_TOPIC)
    for session_id, epoch in ((7, 3), (0, 3), (7, INT32_MAX)):
        ask_fetch(a, version, OFFSETS_TOPIC, topic_id, {}, session_id=session_id, session_epoch=epoch)


@scenario(version=every(ApiKey.LIST_OFFSETS))
def places_that_do_not_depend_on_what_is_there(s: Script, version: int) -> None:
    a = connect(s)
    for timestamp in (-2, -4, -5, -6, -7, INT64_MAX, INT64_MIN):
        ask_offsets(a, version, OFFSETS_TOPIC, (0, -1, timestamp))
    ask_offsets(
        a, version, OFFSETS_TOPIC, (PARTITIONS, -1, -2), (-1, -1, -2), (49, -1, -2), (3, -1, -2), (3, -1, -1)
    )
    if version >= 4:
        for epoch in (INT32_MIN, -2, 0, 1, INT32_MAX):
            ask_offsets(a, version, OFFSETS_TOPIC, (0, epoch, -2))
    if version >= 2:
        for level in (0, 1):
            ask_offsets(a, version, OFFSETS_TOPIC, (0, -1, -2), (1, -1, INT64_MAX), isolation_level=level)
