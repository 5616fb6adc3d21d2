# SPDX-License-Identifier: Apache-2.0
"""Playing scenarios, many at a time: each has its own groups and connections, so they do not meet.

Those of `ALONE` share a group, and are played one after the other.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final
from uuid import UUID

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.message_codecs import find_message_codec
from tests.kafka.differential.catalogue import ALONE, Scenario
from tests.kafka.differential.ordinary import TOPICS
from tests.kafka.differential.script import Script, ServerUnderTest
from tests.kafka.differential.wire import Wire, frame, request_body, request_header
from tests.support.raw import create_topic
from tests.support.waiting import wait_until

AT_A_TIME: Final = 24
BROKEN: Final = "!!"
"""Begins the last line of a transcript whose script could not go on."""

Transcript = list[str]


def prepare(server: ServerUnderTest) -> None:
    """Create the common topics and wait until the server coordinates every group."""
    for name, partitions in TOPICS.items():
        create_topic(server.bootstrap, name, partitions)
    server.topic_ids = _topic_ids(server)
    assert server.topic_ids.keys() >= TOPICS.keys()
    _wait_for_all_coordinators(server)
    _wait_for_other_coordinators(server)


def play_all(scenarios: Iterable[Scenario], servers: Mapping[str, ServerUnderTest]) -> dict[str, Transcript]:
    """Play each scenario on the server with its settings and return the transcripts by its name."""
    slow_first = sorted(scenarios, key=lambda scenario: not scenario.slow)
    alone = [scenario for scenario in slow_first if scenario.settings == ALONE]
    turns = [[scenario] for scenario in slow_first if scenario.settings != ALONE] + [alone]

    def play_in_turn(turn: Sequence[Scenario]) -> list[tuple[str, Transcript]]:
        return [(scenario.name, play(scenario, servers[scenario.settings])) for scenario in turn]

    with ThreadPoolExecutor(AT_A_TIME) as pool:
        return dict(played for turn in pool.map(play_in_turn, turns) for played in turn)


def play(scenario: Scenario, server: ServerUnderTest) -> Transcript:
    """Play one scenario. Where the script cannot go on, its transcript ends with the reason."""
    script = Script(server, scenario.prefix)
    try:
        scenario.play(script)
    except Exception as error:  # noqa: BLE001 - whatever it is, the transcript that ends here shows it
        script.transcript.append(f"{BROKEN} {type(error).__name__}: {error}")
    finally:
        script.close()
    return script.transcript


def _call(wire: Wire, api: ApiKey, version: int, flexible: bool, **fields: object) -> object:
    body = request_body(api, version, fields)
    wire.send(frame(request_header(api, version, 1, "preparing", b"\0" if flexible else None) + body))
    answer = wire.receive()
    assert answer is not None
    return find_message_codec(api, version).decode_response(answer, 5 if flexible else 4)


def _topic_ids(server: ServerUnderTest) -> dict[str, UUID]:
    wire = Wire(server.bootstrap)
    try:
        metadata = _call(wire, ApiKey.METADATA, 12, flexible=True, topics=None)
        return {topic.name: topic.topic_id for topic in metadata.topics}  # type: ignore[attr-defined]
    finally:
        wire.close()


def _wait_for_all_coordinators(server: ServerUnderTest) -> None:
    """Every partition of the offsets topic must be loaded: ask for groups in all of them."""
    wire = Wire(server.bootstrap)
    groups = [f"preparing-{number}" for number in range(400)]
    wanted = [{"group_id": group, "topics": []} for group in groups]

    def coordinated() -> bool:
        _call(wire, ApiKey.FIND_COORDINATOR, 3, flexible=True, key=groups[0], key_type=0)
        answer = _call(wire, ApiKey.OFFSET_FETCH, 8, flexible=True, groups=wanted)
        return all(group.error_code == ErrorCode.NONE for group in answer.groups)  # type: ignore[attr-defined]

    try:
        started = time.monotonic()
        wait_until(coordinated, what=lambda: f"all coordinators, for {time.monotonic() - started:.0f} s")
    finally:
        wire.close()


def _wait_for_other_coordinators(server: ServerUnderTest) -> None:
    """Kafka makes the topics of transactions and share groups when their first coordinator is looked for."""
    wire = Wire(server.bootstrap)
    asked = ((1, "preparing"), (2, "preparing:AAAAAAAAAAAAAAAAAAAAAQ:0"))

    def decided() -> bool:
        errors = set()
        for key_type, key in asked:
            answer = _call(
                wire, ApiKey.FIND_COORDINATOR, 6, flexible=True, key_type=key_type, coordinator_keys=[key]
            )
            errors.add(answer.coordinators[0].error_code)  # type: ignore[attr-defined]
        return ErrorCode.COORDINATOR_NOT_AVAILABLE not in errors

    try:
        wait_until(decided, what="the coordinators of transactions and share groups")
    finally:
        wire.close()
