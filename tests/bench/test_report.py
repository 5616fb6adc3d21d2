# SPDX-License-Identifier: Apache-2.0
"""From measurements to numbers, lines and the page."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import report, results
from bench.load import Measured
from bench.report import Result
from bench.results import Runs


def measured(requests: int, *, server_cpu_s: float | None = 2.0) -> Measured:
    latencies = [(number + 1) / 1000 for number in range(requests)]
    return Measured(2.0, latencies, driver_cpu_s=0.5, server_cpu_s=server_cpu_s, errors=Counter({"bad": 3}))


def test_rates_and_cpu_are_per_request() -> None:
    result = report.describe_load("commit", measured(1000))
    assert result["requests_per_s"] == 500
    assert result["server_cpu_s_per_100k"] == 200
    assert result["driver_cpu_s_per_100k"] == 50
    assert (result["errors"], result["error_kinds"]) == (3, {"bad": 3})


def test_without_a_request_or_a_process_id_nothing_is_made_up() -> None:
    result = report.describe_load("commit", measured(0, server_cpu_s=None))
    assert result["latency_ms"] is None
    assert result["server_cpu_s_per_100k"] is None
    assert result["driver_cpu_s_per_100k"] is None
    assert report.line("commit", 10, result).split()[1:5] == ["0", "-", "-", "-"]


def test_percentiles_are_the_nearest_ranks_in_milliseconds() -> None:
    shown = report.percentiles_ms([number / 1000 for number in range(100, 0, -1)])
    assert shown == {"p50": 50.0, "p95": 95.0, "p99": 99.0, "max": 100.0}


@given(st.lists(st.floats(min_value=0, max_value=10), min_size=1, max_size=300))
def test_percentiles_are_measured_values_in_order(latencies_s: list[float]) -> None:
    shown = report.percentiles_ms(latencies_s)
    assert shown is not None
    assert list(shown.values()) == sorted(shown.values())
    assert set(shown.values()) <= {round(latency * 1000, 3) for latency in latencies_s}
    assert shown["max"] == round(max(latencies_s) * 1000, 3)


def test_findings_and_kinds_of_errors_stand_behind_a_line() -> None:
    result: Result = {"findings": {"offsets": 1000}, "errors": 2, "error_kinds": {"offset missing": 2}}
    assert report.line("restart", 10, result).endswith("  offsets 1,000; 2 x offset missing")


def loaded(cpu: float, errors: int = 0) -> Result:
    latency = {"p50": 1.0, "p99": 2.0}
    return {
        "requests_per_s": 1000.0,
        "server_cpu_s_per_100k": cpu,
        "latency_ms": latency,
        "driver_cpu_s_per_100k": 0.5,
        "errors": errors,
    }


def test_the_page_shows_medians_ranges_and_the_ratio_to_kafka() -> None:
    runs = Runs()
    for ours, theirs in ((1.0, 4.0), (2.0, 8.0), (1.5, 5.0)):
        runs.add("commit", "Kafka", loaded(theirs))
        runs.add("commit", "Groupkeeper", loaded(ours, errors=1))
    page = results.markdown(runs, {"machine": "M"}, reference="Kafka")
    assert "| commit | Kafka | 1,000 | 5.00 (4.00-8.00) | 1.00 | 2.00 | 0.50 |  | 0 |" in page
    assert "| commit | Groupkeeper | 1,000 | 1.50 (1.00-2.00) | 1.00 | 2.00 | 0.50 | 0.30 | 3 |" in page
    assert "median of 3 runs" in page
    assert "| machine | M |" in page
    assert runs.errors() == 3


def test_the_page_has_a_table_for_each_scenario_with_findings() -> None:
    runs = Runs()
    runs.add("start", "Kafka", {"findings": {"listening_ms": 2300.4}, "errors": 0})
    runs.add("start", "Groupkeeper", {"findings": {"listening_ms": 99.5}, "errors": 0})
    page = results.markdown(runs, {}, reference="Kafka")
    assert "## Start" in page
    assert "| server | listening ms | errors |" in page
    assert "| Kafka | 2,300 | 0 |" in page
    assert "| Groupkeeper | 99.50 | 0 |" in page


def test_a_run_that_could_not_be_played_is_an_error_on_the_page() -> None:
    runs = Runs()
    runs.add("commit", "Kafka", loaded(4.0))
    runs.add("commit", "Groupkeeper", {"errors": 1, "error_kinds": {"refused": 1}})
    page = results.markdown(runs, {}, reference="Kafka")
    assert "| commit | Groupkeeper | - | - | - | - | - |  | 1 |" in page


@pytest.mark.parametrize(("value", "shown"), [(None, "-"), (1234.5, "1,234.50"), (0, "0.00")])
def test_cells(value: float | None, shown: str) -> None:
    assert report.cell(value, 9, 2) == f"{shown:>9}"
