# SPDX-License-Identifier: Apache-2.0
"""A running node compacts its log while offsets are committed, and is killed meanwhile."""

import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support import raw
from tests.support.service import Service, serving, wait_until

TOPIC = "topic"
COMMITS_AT_ONCE = 10
PATIENCE_S = 180
"""For what takes a second or two where nothing else runs."""
GROUPS = [f"group-{number}" for number in range(5)]
SETTINGS: dict[str, str | int] = {
    # All groups in one log, of small segments, looked at as often as it goes.
    "offsets.topic.num.partitions": 1,
    "offsets.topic.segment.bytes": 4_096,
    "journal.checkpoint.interval.ms": 100,
    "log.cleaner.backoff.ms": 50,
    "min.cleanable.dirty.ratio": "0.1",
    "log.flush": "always",
}


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with serving(tmp_path, SETTINGS) as service:
        yield service


def metric(service: Service, name: str) -> float:
    """One sample without labels."""
    with urllib.request.urlopen(f"http://127.0.0.1:{service.metrics_port}/metrics", timeout=120) as answer:
        text = answer.read().decode()
    (value,) = [
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == f"groupkeeper_{name}"
    ]
    return value


def commit_until(service: Service, newest: int, cleanings: int) -> int:
    """Commit over and over until so many cleanings are done; returns the newest offset.

    A cleaning is a process of its own that lets all others go first, so commits leave it room: where they did not, a
    busy machine would bring forth commits and no cleaning.
    """

    def has_cleaned() -> bool:
        nonlocal newest
        for _ in range(COMMITS_AT_ONCE):
            newest += 1
            for group in GROUPS:
                request = raw.standalone_commit(group, TOPIC, {p: newest + p for p in range(8)})
                answer = connection.call(request, 8)
                assert {p.error_code for topic in answer.topics for p in topic.partitions} == {0}
        return metric(service, "log_cleanings_total") >= cleanings

    with raw.RawConnection(service.bootstrap) as connection:
        wait_until(has_cleaned, PATIENCE_S, what=f"{cleanings} cleanings", interval_s=0.1)
    return newest


def log_bytes(directory: Path) -> int:
    """The bytes of all segments that are there now."""
    size = 0
    for path in directory.glob("*.log"):
        with suppress(FileNotFoundError):  # a segment that was compacted away meanwhile
            size += path.stat().st_size
    return size


@pytest.mark.slow
@pytest.mark.timeout(5 * PATIENCE_S)
def test_a_node_compacts_while_it_serves_and_is_killed(service: Service) -> None:
    raw.create_topic(service.bootstrap, TOPIC)
    newest = 0
    for _ in range(3):
        newest = commit_until(service, newest, 2)
        assert metric(service, "log_cleaning_failures_total") == 0
        assert metric(service, "log_uncleanable_partitions") == 0
        assert metric(service, "log_cleaning_freed_bytes_total") > 0
        assert metric(service, "log_last_cleaned_timestamp_seconds") > 1_700_000_000
        assert 0 <= metric(service, "log_dirty_ratio_max") <= 1
        service.kill9()
        service.start()
        for group in GROUPS:
            expected = {(TOPIC, p): newest + p for p in range(8)}
            assert raw.fetch_offsets(service.bootstrap, group) == expected
    directory = service.data_dir / "__consumer_offsets-0"
    # All that was ever committed would be this many times larger; the cleaner may have been behind the commits.
    written = newest * len(GROUPS) * 8 * 60
    wait_until(lambda: log_bytes(directory) < written / 3, PATIENCE_S, what="the cleaner to catch up")
    service.terminate()
    assert not [path for path in directory.iterdir() if path.suffix in (".cleaned", ".swap", ".deleted")]
    assert log_bytes(directory) < written / 3
    assert (service.data_dir / "cleaner-offset-checkpoint").exists()


def test_a_node_that_is_told_not_to_compact_does_not(service: Service) -> None:
    service.terminate()
    service.settings["log.cleaner.enable"] = "false"
    service.start()
    raw.create_topic(service.bootstrap, TOPIC)
    for number in range(60):
        raw.commit_offsets(service.bootstrap, GROUPS[0], TOPIC, dict.fromkeys(range(12), number))
    directory = service.data_dir / "__consumer_offsets-0"
    wait_until(lambda: len(list(directory.glob("*.log"))) > 3, what="several segments")
    service.terminate()
    assert not (service.data_dir / "cleaner-offset-checkpoint").exists()
    assert sum(path.stat().st_size for path in directory.glob("*.log")) > 60 * 12 * 50
