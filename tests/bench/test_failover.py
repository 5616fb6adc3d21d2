# SPDX-License-Identifier: Apache-2.0
"""`python -m bench failover`: the process that stands by takes over, and each client gets through again."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from bench.failover.clients import KINDS
from bench.failover.tables import SPARE, Measured, Round, markdown
from bench.kafka import KafkaUnavailable, kafka_classpath
from tests.support.missing import skip_or_fail
from tests.support.processes import REPOSITORY


@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_clients_get_through_again_with_and_without_a_spare(tmp_path: Path) -> None:
    try:
        kafka_classpath()
    except KafkaUnavailable as error:
        skip_or_fail(str(error))
    page = tmp_path / "RESULTS.md"
    # In a process of its own: kafka-python leaves sockets behind, and whoever collects them here is warned.
    command = [sys.executable, "-m", "bench", "failover", "--rounds", "1", "--write", str(page)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3_000:] + done.stderr[-3_000:]
    shown = page.read_text()
    for title in SPARE.values():
        (row,) = (line for line in shown.splitlines() if line.startswith(f"| {title} |"))
        assert len(re.findall(r"\d ms \(", row)) == 1 + len(KINDS)
    assert re.search(r"stands by has \d+ MiB", shown)


def test_what_a_client_needs_longer_than_the_gateway_is_its_own() -> None:
    took = [
        Round(True, 30.0, {"one": 50.0, "two": 31.0}),
        Round(True, 10.0, {"one": 12.0, "two": 3_010.0}),
        Round(False, 700.0, {"one": 750.0, "two": 701.0}),
    ]
    shown = markdown(Measured(2, 5.0, 20.0, took, [40.0, 42.0]), {"date": "today"})
    with_spare, without = (
        next(line for line in shown.splitlines() if line.startswith(f"| {SPARE[has_spare]} |"))
        for has_spare in (True, False)
    )
    assert with_spare.endswith("| 20 ms (10 to 30) | 11 ms (2 to 20) | 1,500 ms (1 to 3,000) |")
    assert without.endswith("| 700 ms (700 to 700) | 50 ms (50 to 50) | 1 ms (1 to 1) |")
    assert "41 MiB (40 to 42)" in shown
