# SPDX-License-Identifier: Apache-2.0
"""kafka-consumer-groups.sh --reset-offsets, forward and backward: what is written is what was said, or nothing.

The same commands run against a real broker and against us: where a topic says where its work ends, they do the same
as on a broker whose logs end there; where it does not, they do what they were told or end with an error.
"""

import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import confluent_kafka
import pytest

from coordinator.catalogue.topic_configs import END_GROUP
from tests.kafka.broker import KafkaBroker
from tests.kafka.declared import declared_topic
from tests.kafka.java_shell import JavaShell, Ran
from tests.support import raw
from tests.support.service import Service

pytestmark = pytest.mark.kafka

COMMITTED = {0: 40, 1: 41, 2: 0}
ENDS = {0: 50, 1: 41, 2: 20}
MINUTES_AGO = 10


class Place(NamedTuple):
    """A topic on a server."""

    bootstrap: str
    topic: str


@pytest.fixture(scope="module")
def real(kafka_broker: KafkaBroker) -> Place:
    """A real broker's topic, with records of ten minutes ago up to its ends."""
    topic = f"real-{uuid.uuid4().hex[:8]}"
    raw.create_topic(kafka_broker.bootstrap, topic, len(ENDS))
    producer = confluent_kafka.Producer({"bootstrap.servers": kafka_broker.bootstrap})
    made = datetime.now(UTC) - timedelta(minutes=MINUTES_AGO)
    for partition, end in ENDS.items():
        for number in range(end):
            producer.produce(topic, str(number), partition=partition, timestamp=int(made.timestamp() * 1000))
    assert producer.flush(30) == 0
    return Place(kafka_broker.bootstrap, topic)


@pytest.fixture(scope="module")
def declared(ours: Service) -> Place:
    """A topic of ours whose makers say where it ends."""
    return Place(ours.bootstrap, declared_topic(ours.bootstrap, ENDS))


@pytest.fixture(scope="module", params=["no group named", "a group that has not committed"])
def undeclared(ours: Service, request: pytest.FixtureRequest) -> Place:
    """A topic of ours without declared ends."""
    topic = f"undeclared-{uuid.uuid4().hex[:8]}"
    named = request.param.startswith("a group")
    raw.create_topic(ours.bootstrap, topic, len(ENDS), configs={END_GROUP: "silent"} if named else {})
    return Place(ours.bootstrap, topic)


class Reset(NamedTuple):
    """A run of the tool, and the offsets that the group has afterwards."""

    ran: Ran
    offsets: Mapping[int, int]

    @property
    def is_refused(self) -> bool:
        """Whether it says aloud that it has not done it."""
        said = self.ran.output + self.ran.errors
        return self.ran.status != 0 or "Error" in said


def reset(
    shell: JavaShell,
    place: Place,
    *how: str,
    topics: tuple[str, ...] = ("--topic", "{topic}"),
    committed: Mapping[int, int] = COMMITTED,
) -> Reset:
    """Reset a new group that has committed these offsets. `{topic}` stands for the topic's name."""
    group = f"reset-{uuid.uuid4().hex[:12]}"
    raw.wait_for_coordinator(place.bootstrap, group)
    if committed:
        raw.commit_offsets(place.bootstrap, group, place.topic, committed)
    words = [word.replace("{topic}", place.topic) for word in (*topics, *how)]
    ran = shell.groups(place.bootstrap, "--reset-offsets", "--group", group, *words, "--execute")
    stored = raw.fetch_offsets(place.bootstrap, group)
    return Reset(ran, {partition: offset for (_, partition), offset in stored.items()})


def same_as_on_kafka(
    shell: JavaShell, real: Place, ours: Place, *how: str, **more: object
) -> Mapping[int, int]:
    """Reset on both; returns the offsets that both have then."""
    theirs, mine = reset(shell, real, *how, **more), reset(shell, ours, *how, **more)  # type: ignore[arg-type]
    assert (mine.offsets, mine.ran.status) == (theirs.offsets, theirs.ran.status), f"{how}: {mine} {theirs}"
    assert mine.is_refused == theirs.is_refused
    return mine.offsets


@pytest.mark.parametrize(
    ("how", "offsets"),
    [
        (["--to-offset", "7"], {0: 7, 1: 7, 2: 7}),
        (["--to-offset", "45"], {0: 45, 1: 41, 2: 20}),  # no further than the ends, as on a broker
        (["--shift-by", "3"], {0: 43, 1: 41, 2: 3}),
        (["--shift-by", "-3"], {0: 37, 1: 38, 2: 0}),
        (["--to-earliest"], {0: 0, 1: 0, 2: 0}),
        (["--to-latest"], ENDS),
        (["--to-current"], COMMITTED),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_with_a_declared_end_every_reset_does_what_it_does_on_kafka(
    java_shell: JavaShell, real: Place, declared: Place, how: list[str], offsets: Mapping[int, int]
) -> None:
    assert same_as_on_kafka(java_shell, real, declared, *how) == offsets


@pytest.mark.parametrize("how", [["--to-current"], ["--to-latest"], ["--to-offset", "50"]], ids=" ".join)
def test_a_group_that_has_committed_nothing_starts_at_the_declared_end(
    java_shell: JavaShell, real: Place, declared: Place, how: list[str]
) -> None:
    assert same_as_on_kafka(java_shell, real, declared, *how, committed={}) == ENDS


@pytest.mark.parametrize("topics", [("--all-topics",), ("--topic", "{topic}:0,2"), ("--topic", "{topic}:1")])
def test_only_the_topics_and_partitions_named_are_reset(
    java_shell: JavaShell, real: Place, declared: Place, topics: tuple[str, ...]
) -> None:
    same_as_on_kafka(java_shell, real, declared, "--to-offset", "7", topics=topics)


def plan(path: Path, place: Place, offsets: Mapping[int, int]) -> str:
    """Write a CSV as --export prints it."""
    path.write_text("".join(f'"{place.topic}",{index},{offset}\n' for index, offset in offsets.items()))
    return str(path)


@pytest.mark.parametrize("topics", [("--all-topics",), ("--topic", "{topic}"), ("--topic", "{topic}:0")])
def test_a_file_sets_what_it_says_forward_and_backward(
    java_shell: JavaShell, real: Place, declared: Place, tmp_path: Path, topics: tuple[str, ...]
) -> None:
    wanted = {0: 49, 1: 3, 2: 20}
    for place in (real, declared):
        done = reset(java_shell, place, "--from-file", plan(tmp_path / "p", place, wanted), topics=topics)
        assert (done.ran.status, done.offsets) == (0, wanted), done


def test_what_was_exported_is_written_again(java_shell: JavaShell, declared: Place, tmp_path: Path) -> None:
    raw.commit_offsets(declared.bootstrap, "exported", declared.topic, ENDS)
    exported = java_shell.groups(
        declared.bootstrap,
        *("--reset-offsets", "--group", "exported", "--all-topics", "--to-current", "--export", "--dry-run"),
    )
    (tmp_path / "plan").write_text(exported.output.strip() + "\n")
    done = reset(java_shell, declared, "--from-file", str(tmp_path / "plan"), committed={})
    assert done.offsets == ENDS, done


def by_duration(minutes: int) -> list[str]:
    return ["--by-duration", f"PT{minutes}M"]


def to_datetime(minutes: int) -> list[str]:
    at = datetime.now(UTC) - timedelta(minutes=minutes)
    return ["--to-datetime", f"{at:%Y-%m-%dT%H:%M:%S}.000+00:00"]


@pytest.mark.parametrize("by_time", [by_duration, to_datetime])
def test_nothing_was_made_later_than_the_end_and_what_was_earlier_nobody_knows(
    java_shell: JavaShell, real: Place, declared: Place, by_time: Callable[[int], list[str]]
) -> None:
    later = by_time(-1)
    assert reset(java_shell, real, *later).offsets == ENDS
    assert reset(java_shell, declared, *later).offsets == ENDS
    earlier = reset(java_shell, declared, *by_time(5))
    assert earlier.is_refused, earlier
    assert earlier.ran.status == 0, "Kafka's tool ends so after a stack trace, too (docs/offsets.md)"
    assert earlier.offsets == COMMITTED


@pytest.mark.parametrize(
    "how",
    [
        ["--to-offset", "7"],
        ["--to-offset", "1200345"],
        ["--shift-by", "500"],
        ["--shift-by", "-3"],
        ["--to-latest"],
        by_duration(5),
        by_duration(-1),
        ["--to-datetime", "2020-01-01T00:00:00.000"],
    ],
    ids=" ".join,
)
def test_without_a_declared_end_a_reset_that_needs_one_is_refused_and_writes_nothing(
    java_shell: JavaShell, undeclared: Place, how: list[str]
) -> None:
    refused = reset(java_shell, undeclared, *how)
    assert refused.is_refused, refused
    assert refused.ran.status != 0, refused
    assert refused.offsets == COMMITTED


def test_without_a_declared_end_the_start_and_the_present_place_are_known(
    java_shell: JavaShell, undeclared: Place
) -> None:
    assert reset(java_shell, undeclared, "--to-earliest").offsets == dict.fromkeys(ENDS, 0)
    assert reset(java_shell, undeclared, "--to-current").offsets == COMMITTED
    refused = reset(java_shell, undeclared, "--to-current", committed={})
    assert (refused.ran.status, refused.offsets) == (1, {})


@pytest.mark.parametrize("committed", [{}, COMMITTED], ids=["a new group", "a group with offsets"])
def test_without_a_declared_end_a_file_is_refused(
    java_shell: JavaShell, undeclared: Place, tmp_path: Path, committed: Mapping[int, int]
) -> None:
    path = plan(tmp_path / "plan", undeclared, {0: 1_200_345, 1: 7, 2: 0})
    refused = reset(java_shell, undeclared, "--from-file", path, committed=committed)
    assert (refused.ran.status, refused.offsets) == (1, committed), refused


def test_an_end_group_is_named_and_unnamed_with_kafkas_own_tool(java_shell: JavaShell, ours: Service) -> None:
    topic = f"named-{uuid.uuid4().hex[:8]}"
    raw.create_topic(ours.bootstrap, topic, len(ENDS))
    raw.commit_offsets(ours.bootstrap, "makers", topic, ENDS)
    here = Place(ours.bootstrap, topic)
    which = ("--bootstrap-server", ours.bootstrap, "--entity-type", "topics", "--entity-name", topic)

    def configure(*how: str) -> str:
        ran = java_shell.run("configs", *which, *how)
        assert ran.status == 0, ran
        return ran.output

    assert reset(java_shell, here, "--to-offset", "7").is_refused
    configure("--alter", "--add-config", f"{END_GROUP}=makers,retention.ms=5")
    assert f"{END_GROUP}=makers" in configure("--describe")
    assert reset(java_shell, here, "--to-offset", "7").offsets == dict.fromkeys(ENDS, 7)
    ours.restart()
    assert f"{END_GROUP}=makers" in configure("--describe")
    configure("--alter", "--delete-config", END_GROUP)
    described = configure("--describe")
    assert END_GROUP not in described
    assert "retention.ms=5" in described
    assert reset(java_shell, here, "--to-offset", "7").is_refused


def test_describe_tells_the_lag_where_the_end_is_declared(java_shell: JavaShell, declared: Place) -> None:
    raw.commit_offsets(declared.bootstrap, "behind", declared.topic, COMMITTED)
    rows = java_shell.groups(declared.bootstrap, "--describe", "--group", "behind").table()
    shown = {
        int(row["PARTITION"]): (row["CURRENT-OFFSET"], row["LOG-END-OFFSET"], row["LAG"]) for row in rows
    }
    assert shown == {0: ("40", "50", "10"), 1: ("41", "41", "0"), 2: ("0", "20", "20")}


def test_describe_shows_the_offsets_and_no_lag_where_nobody_knows_the_end(
    java_shell: JavaShell, undeclared: Place
) -> None:
    raw.commit_offsets(undeclared.bootstrap, "lost", undeclared.topic, COMMITTED)
    rows = java_shell.groups(undeclared.bootstrap, "--describe", "--group", "lost").table()
    mine = [row for row in rows if row["TOPIC"] == undeclared.topic]
    assert {int(row["PARTITION"]): row["CURRENT-OFFSET"] for row in mine} == {0: "40", 1: "41", 2: "0"}
    assert {row["LOG-END-OFFSET"] for row in mine} == {"-1"}
    assert all(int(row["LAG"]) < 0 for row in mine)
