# SPDX-License-Identifier: Apache-2.0
"""What passes through a gateway is measured, beside haproxy and a direct connection."""

import re
import shutil
from pathlib import Path

import pytest

from bench.forwarding import tables, turns
from bench.forwarding.asking import Asked
from bench.forwarding.ways import DIRECTLY
from bench.kafka import KafkaUnavailable, kafka_classpath
from tests.support.documented import Documented
from tests.support.missing import skip_or_fail

QUICKLY = "--seconds 0.3 --runs 1 --requests 20 --records 1000"


@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_all_ways_carry_bytes_and_requests_and_the_coordinator_is_watched(
    documented: Documented, tmp_path: Path
) -> None:
    if shutil.which("haproxy") is None:
        skip_or_fail("haproxy is not installed")
    try:
        kafka_classpath()
    except KafkaUnavailable as error:
        skip_or_fail(str(error))
    page = tmp_path / "RESULTS.md"
    (command,) = documented.commands
    documented.run(command, {"--records 500000 --write": f"{QUICKLY} --write {page}"})
    shown = page.read_text()
    for title in (tables.FETCHES, tables.PRODUCES, tables.CONSUMER, tables.PRODUCER, tables.ALONE):
        section = shown.partition(f"## {title}\n")[2].partition("\n## ")[0]
        found = dict(re.findall(r"^\| (\w+) \| ([\d,.]+) \|", section, re.MULTILINE))
        assert set(found) == {"directly", "haproxy", "Groupkeeper"}, shown
    felt = shown.partition(f"## {tables.COORDINATOR}\n")[2]
    for what in (turns.NOTHING, turns.THROUGH_HAPROXY, turns.THROUGH_US):
        *_, longest_cpu_ms, longest_ms, p50_ms, p99_ms = map(float, re.findall(r"[\d.]+", row(felt, what)))
        assert longest_cpu_ms > 0
        assert longest_ms > 0
        assert 0 < p50_ms <= p99_ms


@pytest.mark.parametrize(("runs", "said"), [(1, "1 run"), (3, "3 runs")])
def test_the_page_says_how_many_runs_there_were(runs: int, said: str) -> None:
    asked = [Asked(DIRECTLY, 0.2, 0.1)]
    page = tables.markdown(tables.Measured([], [], [], [], asked, []), {}, runs)
    assert f"medians of {said} in which" in page


def row(section: str, first: str) -> str:
    """The cells of a row behind the first one."""
    (found,) = (line for line in section.splitlines() if line.startswith(f"| {first} |"))
    return found.removeprefix(f"| {first} |")
