# SPDX-License-Identifier: Apache-2.0
"""What passes through a gateway is measured, beside haproxy and a direct connection."""

import re
import shutil
from pathlib import Path

import pytest

from bench import cli
from bench.forwarding import tables, turns
from bench.kafka import KafkaUnavailable, kafka_classpath
from tests.support.missing import skip_or_fail

QUICKLY = ["--seconds", "0.3", "--runs", "1", "--requests", "20", "--records", "1000"]


@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_all_ways_carry_bytes_and_requests_and_the_coordinator_is_watched(tmp_path: Path) -> None:
    if shutil.which("haproxy") is None:
        skip_or_fail("haproxy is not installed")
    try:
        kafka_classpath()
    except KafkaUnavailable as error:
        skip_or_fail(str(error))
    page = tmp_path / "RESULTS.md"
    assert cli.main(["forwarding", *QUICKLY, "--write", str(page)]) == 0
    shown = page.read_text()
    for title in (tables.FETCHES, tables.CONSUMER, tables.PRODUCER, tables.ALONE):
        section = shown.partition(f"## {title}\n")[2].partition("\n## ")[0]
        found = dict(re.findall(r"^\| (\w+) \| ([\d,.]+) \|", section, re.MULTILINE))
        assert set(found) == {"directly", "haproxy", "Groupkeeper"}, shown
    felt = shown.partition(f"## {tables.COORDINATOR}\n")[2]
    for what in (turns.NOTHING, turns.THROUGH_HAPROXY, turns.THROUGH_US):
        *_, longest_cpu_ms, longest_ms, p50_ms, p99_ms = map(float, re.findall(r"[\d.]+", row(felt, what)))
        assert longest_cpu_ms > 0
        assert longest_ms > 0
        assert 0 < p50_ms <= p99_ms


def row(section: str, first: str) -> str:
    """The cells of a row behind the first one."""
    (found,) = (line for line in section.splitlines() if line.startswith(f"| {first} |"))
    return found.removeprefix(f"| {first} |")
