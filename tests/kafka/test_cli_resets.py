# SPDX-License-Identifier: Apache-2.0
"""`groupkeeper groups reset` beside kafka-consumer-groups.sh: the same flags on the same state set the same offsets.

Both run against a real broker and against a topic of ours whose end is declared. Files of one are read by the other.
"""

import time
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import NamedTuple

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient

from tests.cli.conftest import Command, runner
from tests.kafka.broker import KafkaBroker
from tests.kafka.declared import declared_topic
from tests.kafka.java_shell import JavaShell
from tests.support import raw
from tests.support.service import Service

pytestmark = pytest.mark.kafka

COMMITTED = {0: 40, 1: 41, 2: 0}
ENDS = {0: 50, 1: 41, 2: 20}
FIRST = {0: 5, 1: 0, 2: 0}
"""Where the partitions of the real broker start."""
MINUTES_AGO = (20, 10)
"""When each first and each second half of the real broker's records were made."""


class Place(NamedTuple):
    """A topic on a server."""

    bootstrap: str
    topic: str
    is_real: bool


@pytest.fixture(scope="module", params=["real", "ours"])
def place(request: pytest.FixtureRequest) -> Place:
    """A topic that ends at ENDS."""
    place: Place = request.getfixturevalue(f"on_{request.param}")
    return place


@pytest.fixture(scope="module")
def on_real(kafka_broker: KafkaBroker) -> Place:
    topic = f"real-{uuid.uuid4().hex[:8]}"
    raw.create_topic(kafka_broker.bootstrap, topic, len(ENDS))
    producer = confluent_kafka.Producer({"bootstrap.servers": kafka_broker.bootstrap})
    for partition, end in ENDS.items():
        for number in range(end):
            made = time.time() - 60 * MINUTES_AGO[2 * number // end]
            producer.produce(topic, str(number), partition=partition, timestamp=int(made * 1000))
    assert producer.flush(30) == 0
    admin = AdminClient({"bootstrap.servers": kafka_broker.bootstrap})
    for done in admin.delete_records([confluent_kafka.TopicPartition(topic, 0, FIRST[0])]).values():
        done.result(120)
    return Place(kafka_broker.bootstrap, topic, is_real=True)


@pytest.fixture(scope="module")
def on_ours(ours: Service) -> Place:
    return Place(ours.bootstrap, declared_topic(ours.bootstrap, ENDS), is_real=False)


class Done(NamedTuple):
    """What a tool did to a group."""

    is_refused: bool
    offsets: Mapping[int, int]
    said: str


class Both:
    """Kafka's tool and our command, on groups that have committed the same."""

    def __init__(self, shell: JavaShell, place: Place) -> None:
        self._shell = shell
        self._place = place
        self._command: Command = runner()

    def kafka(self, words: list[str], committed: Mapping[int, int]) -> Done:
        group = self._group(committed)
        ran = self._shell.groups(
            self._place.bootstrap, "--reset-offsets", "--group", group, *self._named(words), "--execute"
        )
        said = ran.output + ran.errors
        return Done(ran.status != 0 or "Error" in said, self._offsets(group), said)

    def ours(self, words: list[str], committed: Mapping[int, int]) -> Done:
        group = self._group(committed)
        flags = ["--bootstrap", self._place.bootstrap, "--execute"]
        ran = self._command("groups", "reset", group, *self._named(words), *flags)
        return Done(ran.exit_code != 0, self._offsets(group), ran.stdout + ran.stderr)

    def same(self, *words: str, committed: Mapping[int, int] = COMMITTED) -> Done:
        """Run both; returns what both did."""
        theirs, mine = self.kafka(list(words), committed), self.ours(list(words), committed)
        assert mine[:2] == theirs[:2], f"{words}:\n{mine.said}\n{theirs.said}"
        if mine.is_refused:
            assert mine.offsets == committed, mine.said
        return mine

    def _named(self, words: list[str]) -> list[str]:
        return [word.replace("{topic}", self._place.topic) for word in words]

    def _group(self, committed: Mapping[int, int]) -> str:
        group = f"reset-{uuid.uuid4().hex[:12]}"
        raw.wait_for_coordinator(self._place.bootstrap, group)
        if committed:
            raw.commit_offsets(self._place.bootstrap, group, self._place.topic, committed)
        return group

    def _offsets(self, group: str) -> dict[int, int]:
        return {at: offset for (_, at), offset in raw.fetch_offsets(self._place.bootstrap, group).items()}


@pytest.fixture
def both(java_shell: JavaShell, place: Place) -> Both:
    return Both(java_shell, place)


def ago(minutes: float, zone: timezone = UTC) -> str:
    """A time as Kafka's tool wants it."""
    return (datetime.now(zone) - timedelta(minutes=minutes)).isoformat(timespec="milliseconds")


NUMBERS = [
    ["--to-earliest"],
    ["--to-latest"],
    ["--to-current"],
    *(["--to-offset", offset] for offset in ("0", "7", "45", "1000000")),
    *(["--shift-by", by] for by in ("0", "3", "-3", "-1000", "1000000")),
]


@pytest.mark.parametrize("how", NUMBERS, ids=" ".join)
@pytest.mark.parametrize(
    "scope", [("--topic", "{topic}"), ("--topic", "{topic}:0,2"), ("--all-topics",)], ids=" ".join
)
def test_a_reset_does_what_it_does_with_kafkas_tool(
    both: Both, how: list[str], scope: tuple[str, ...]
) -> None:
    done = both.same(*scope, *how)
    assert not done.is_refused, done.said


@pytest.mark.parametrize("how", NUMBERS, ids=" ".join)
def test_a_group_that_has_committed_nothing_is_reset_as_by_kafkas_tool(both: Both, how: list[str]) -> None:
    done = both.same("--topic", "{topic}", *how, committed={})
    assert done.is_refused == (how[0] == "--shift-by"), done.said


@pytest.mark.parametrize("minutes", [0, 15, 60])
def test_a_reset_to_a_time_does_what_it_does_with_kafkas_tool(both: Both, place: Place, minutes: int) -> None:
    times = [ago(minutes).removesuffix("+00:00"), ago(minutes, timezone(timedelta(hours=5, minutes=30)))]
    for how in (["--by-duration", f"PT{minutes}M"], *(["--to-datetime", each] for each in times)):
        done = both.same("--topic", "{topic}", *how)
        if not place.is_real:  # a topic of ours knows times only since its end was committed
            assert done.is_refused == (minutes > 0), done.said
        else:
            expected = {0: ENDS, 15: {at: end - end // 2 for at, end in ENDS.items()}, 60: FIRST}[minutes]
            assert done.offsets == expected


@pytest.mark.parametrize(
    "words",
    [
        ["--topic", "no-such-topic", "--to-offset", "7"],
        ["--topic", "{topic}:9", "--to-offset", "7"],
        ["--topic", "{topic}", "--to-datetime", "yesterday"],
        ["--topic", "{topic}", "--by-duration", "long"],
        ["--to-offset", "7"],
        ["--topic", "{topic}"],
    ],
    ids=" ".join,
)
def test_what_kafkas_tool_refuses_is_refused(both: Both, words: list[str]) -> None:
    assert both.same(*words).is_refused


FILE = {0: 1_200_345, 1: 7, 2: 0}


def test_a_file_is_read_as_by_kafkas_tool(both: Both, place: Place, tmp_path: Path) -> None:
    path = tmp_path / "plan"
    path.write_text("".join(f'"{place.topic}",{at},{offset}\n' for at, offset in FILE.items()))
    for committed in (COMMITTED, {}):
        done = both.same("--from-file", str(path), committed=committed)
        assert done.offsets == {0: ENDS[0], 1: 7, 2: 0}


def two_groups(place: Place) -> list[str]:
    groups = [f"file-{uuid.uuid4().hex[:12]}" for _ in range(2)]
    for number, group in enumerate(groups):
        raw.wait_for_coordinator(place.bootstrap, group)
        offsets = {at: offset - number if offset else 0 for at, offset in COMMITTED.items()}
        raw.commit_offsets(place.bootstrap, group, place.topic, offsets)
    return groups


def flags(groups: list[str]) -> list[str]:
    return [word for group in groups for word in ("--group", group)]


@pytest.mark.parametrize("count", [1, 2])
def test_what_kafkas_tool_exports_is_imported_here(
    java_shell: JavaShell, place: Place, tmp_path: Path, count: int
) -> None:
    groups, groupkeeper = two_groups(place)[:count], runner()
    ran = java_shell.groups(
        place.bootstrap,
        "--reset-offsets",
        *flags(groups),
        "--all-topics",
        "--to-current",
        "--export",
        "--dry-run",
    )
    assert ran.status == 0, ran
    path = tmp_path / "theirs.csv"
    path.write_text(ran.output)
    ours = groupkeeper("groups", "export", *groups, "--bootstrap", place.bootstrap)
    assert sorted(lines(ours.stdout)) == sorted(lines(ran.output)), "and both write the same"
    before = [raw.fetch_offsets(place.bootstrap, group) for group in groups]
    deleted = groupkeeper("groups", "delete", *groups, "--execute", "--bootstrap", place.bootstrap)
    assert deleted.exit_code == 0, deleted
    named = ["--group", groups[0]] if count == 1 else []
    back = groupkeeper("groups", "import", str(path), *named, "--execute", "--bootstrap", place.bootstrap)
    assert back.exit_code == 0, back
    assert [raw.fetch_offsets(place.bootstrap, group) for group in groups] == before


@pytest.mark.parametrize("count", [1, 2])
def test_what_is_exported_here_is_read_by_kafkas_tool(
    java_shell: JavaShell, place: Place, tmp_path: Path, count: int
) -> None:
    groups, groupkeeper = two_groups(place)[:count], runner()
    ours = groupkeeper("groups", "export", *groups, "--bootstrap", place.bootstrap)
    path = tmp_path / "ours.csv"
    path.write_text(ours.stdout)
    before = [raw.fetch_offsets(place.bootstrap, group) for group in groups]
    zero = ["--topic", place.topic, "--to-offset", "9", "--execute", "--bootstrap", place.bootstrap]
    assert groupkeeper("groups", "reset", *groups, *zero).exit_code == 0
    assert [raw.fetch_offsets(place.bootstrap, group) for group in groups] != before
    ran = java_shell.groups(
        place.bootstrap, "--reset-offsets", *flags(groups), "--from-file", str(path), "--execute"
    )
    assert ran.status == 0, ran
    assert [raw.fetch_offsets(place.bootstrap, group) for group in groups] == before


def lines(csv: str) -> list[str]:
    return [line.replace('"', "") for line in csv.splitlines() if line]


def test_a_dry_run_exports_what_kafkas_tool_exports(java_shell: JavaShell, place: Place) -> None:
    (group, _), groupkeeper = two_groups(place), runner()
    how = ["--topic", place.topic, "--shift-by", "4", "--export"]
    theirs = java_shell.groups(place.bootstrap, "--reset-offsets", "--group", group, *how, "--dry-run")
    ours = groupkeeper("groups", "reset", group, *how, "--bootstrap", place.bootstrap)
    assert sorted(lines(ours.stdout)) == sorted(lines(theirs.output))
    assert raw.fetch_offsets(place.bootstrap, group) == {(place.topic, at): o for at, o in COMMITTED.items()}
