# SPDX-License-Identifier: Apache-2.0
"""How the figures of RESULTS.md come into other pages."""

import pytest

from bench.browsing import Asked as AskedPage
from bench.browsing import table
from bench.figures import (
    ANSWERS,
    BEGIN,
    BROWSING,
    END,
    FIRST_PAGE,
    NoFigures,
    beside_haproxy,
    beside_kafka,
    of_many_groups,
    placed,
)
from bench.forwarding import tables
from bench.forwarding.asking import Asked
from bench.forwarding.streaming import Carried
from bench.forwarding.turns import NOTHING, THROUGH_US, Felt
from bench.page import facts_table
from bench.report import Result
from bench.results import Runs, markdown
from bench.watched import Turn

PLACE = f"before\n\n{BEGIN}old\n{END}\nafter\n"
FACTS = {
    "date": "2026-11-22 14:00 UTC",
    "machine": "a machine",
    "Python": "3.11.2, uvloop 0.23.0",
    "Kafka": "4.3.0 on Java 17",
    "command": "`python -m bench compare --runs 3 --write`",
}


def loaded(rate: float, cpu: float) -> Result:
    latency = {"p50": 1.0, "p99": 2.0}
    return {
        "requests_per_s": rate,
        "server_cpu_s_per_100k": cpu,
        "driver_cpu_s_per_100k": 0.5,
        "latency_ms": latency,
        "errors": 0,
    }


def page(scenarios: tuple[str, ...]) -> str:
    runs = Runs()
    for scenario in scenarios:
        for server, rate, cpu in (
            ("Kafka", 10_049.0, 9.96),
            ("Groupkeeper, log.flush=os", 31_251.0, 2.04),
            ("Groupkeeper, log.flush=always", 20_000.0, 3.0),
        ):
            for factor in (0.9, 1.0, 1.2):
                runs.add(scenario, server, loaded(rate * factor, cpu * factor))
    for server, listening in (("Kafka", 3437), ("Groupkeeper, log.flush=os", 414)):
        runs.add(
            "start", server, {"findings": {"listening_ms": listening, "idle_rss_mib": 65.3}, "errors": 0}
        )
    return markdown(runs, FACTS, "Kafka")


ALL = ("commit", "heartbeat", "fetch", "mixed", "commit_p100")


def test_medians_stand_in_their_place_with_few_digits_and_their_command() -> None:
    shown = placed(PLACE, page(ALL), beside_kafka)
    assert shown.startswith("before\n\n")
    assert shown.endswith("\nafter\n")
    assert "old" not in shown
    assert "| commits | 10,000 | 10.0 | 31,300 | 2.0 |\n" in shown
    words = " ".join(shown.split())
    assert "it took 20,000 commits a second" in words
    assert (
        "listened 0.4 s after its start on an empty directory, where Kafka took 3.4 s, and took 65 MiB"
        in words
    )
    assert "medians of 3 runs on 2026-11-22" in words
    assert '\nmake bench ARGS="compare --runs 3"\n' in shown
    assert placed(shown, page(ALL), beside_kafka) == shown


def test_what_was_not_measured_is_not_made_up() -> None:
    with pytest.raises(NoFigures, match="nothing of commit_p100, Kafka"):
        placed(PLACE, page(ALL[:-1]), beside_kafka)
    with pytest.raises(NoFigures, match="no table Load"):
        placed(PLACE, page(()), beside_kafka)
    with pytest.raises(NoFigures, match="has no place"):
        placed("nothing", page(ALL), beside_kafka)


def forwarded() -> str:
    """A page with both parts, the second of three runs."""
    carried = [
        Carried(way, rate * factor, cost * factor)
        for factor in (0.9, 1.0, 1.2)
        for way, rate, cost in (
            ("directly", 1_253.0, 0.0),
            ("haproxy", 413.0, 0.63),
            ("Groupkeeper", 563.0, 0.57),
        )
    ]
    asked = [Asked("directly", 0.17, 0.18), Asked("haproxy", 0.2, 0.2), Asked("Groupkeeper", 0.26, 0.245)]
    felt = [Felt(NOTHING, 0.0, 0.34, 5.7, 0.6, 8.0), Felt(THROUGH_US, 1_259.0, 0.4, 4.6, 8.6, 31.0)]
    measured = tables.Measured(carried, carried, carried, carried, asked, felt)
    return f"{page(ALL)}\n{tables.markdown(measured, FACTS, 3)}\n"


def test_a_gateway_stands_beside_haproxy() -> None:
    shown = placed(PLACE, forwarded(), beside_haproxy)
    assert "| fetches of 1 MB, CPU s per GB | 0.63 | 0.57 |\n" in shown
    assert "| added to the median of producing a record alone, ms | 0.03 | 0.09 |\n" in shown
    words = " ".join(shown.split())
    assert "While 1,259 MB a second passed, the longest turn" in words
    assert "had 0.40 ms of processor time; while nothing did, 0.34 ms." in words
    assert "on 2026-11-22 on a machine" in words
    assert placed(PLACE, forwarded(), beside_kafka) == placed(PLACE, page(ALL), beside_kafka)


def test_a_gateway_that_was_not_measured_has_no_figures() -> None:
    with pytest.raises(NoFigures, match="what a gateway costs"):
        placed(PLACE, page(ALL), beside_haproxy)


def test_the_first_page_of_many_groups_is_shown_with_the_longest_turn() -> None:
    asked = [AskedPage(FIRST_PAGE, 1.0, 2.0, [0.1574, 0.2]), AskedPage("other", 3.0, 4.0, [0.001])]
    lines = "\n".join(table(asked, [Turn(1.5, 0.0052, 0.006), Turn(3.5, 0.0061, 0.01), Turn(5.0, 1.0, 1.0)]))
    facts = facts_table({**FACTS, "groups": "100,000"})
    results = f"# {BROWSING}\n\n{facts}\n\n## {ANSWERS}\n\n{lines}\n"
    words = " ".join(placed(PLACE, results, of_many_groups).split())
    assert "The first page of 100,000 groups was answered in 157 ms." in words
    assert "event loop took 6.1 ms of processor time" in words
    with pytest.raises(NoFigures, match="the page for browsers"):
        placed(PLACE, "", of_many_groups)
