# SPDX-License-Identifier: Apache-2.0
"""`python -m bench failover`: the process that stands by takes over, and each client gets through again."""

import re
from pathlib import Path

import pytest

from bench.failover.clients import KINDS
from bench.failover.tables import SPARE, Measured, Round, markdown
from bench.kafka import KafkaUnavailable, kafka_classpath
from tests.support.documented import Documented
from tests.support.missing import skip_or_fail


@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_clients_get_through_again_with_and_without_a_spare(documented: Documented, tmp_path: Path) -> None:
    try:
        kafka_classpath()
    except KafkaUnavailable as error:
        skip_or_fail(str(error))
    page = tmp_path / "RESULTS.md"
    (command,) = documented.commands
    documented.run(command, {"--rounds 5 --write": f"--rounds 1 --write {page}"})
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
