# SPDX-License-Identifier: Apache-2.0
"""Groupkeeper answers every scenario as the golden transcripts say that Kafka 4.4 does, but for what is on purpose."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.kafka.differential.catalogue import Scenario, all_scenarios
from tests.kafka.differential.goldens import GROUPKEEPER, KAFKA, load
from tests.kafka.differential.play import Transcript, play_all
from tests.kafka.differential.servers import groupkeeper_servers

SCENARIOS = all_scenarios()

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]  # the first test plays for all


@pytest.fixture(scope="module")
def goldens() -> Mapping[str, Mapping[str, Transcript]]:
    """All golden transcripts, Kafka's and our own."""
    return {kind: load(kind) for kind in (KAFKA, GROUPKEEPER)}


@pytest.fixture(scope="module")
def played(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, Transcript]:
    """What Groupkeeper answers in the scenarios that this run has chosen."""
    chosen = chosen_scenarios(request)
    wanted = sorted({scenario.settings for scenario in chosen})
    with groupkeeper_servers(tmp_path_factory.mktemp("differential"), wanted) as servers:
        return play_all(chosen, servers)


def chosen_scenarios(request: pytest.FixtureRequest) -> list[Scenario]:
    """The scenarios whose tests in the fixture's module were selected."""
    return list(dict.fromkeys(_scenarios_of(request)))


def _scenarios_of(request: pytest.FixtureRequest) -> Iterator[Scenario]:
    for item in request.session.items:
        parameters: dict[str, Any] = getattr(getattr(item, "callspec", None), "params", {})
        if "scenario" in parameters and item.path == request.path:
            yield parameters["scenario"]


def _in_the_gate(scenario: Scenario) -> Any:
    """Not where real time passes: the simulation has the same rules."""
    return pytest.param(scenario, marks=[] if scenario.slow else pytest.mark.gate)


@pytest.mark.parametrize("scenario", [_in_the_gate(each) for each in SCENARIOS], ids=str)
def test_answers(
    scenario: Scenario, played: Mapping[str, Transcript], goldens: Mapping[str, Mapping[str, Transcript]]
) -> None:
    theirs = goldens[KAFKA].get(scenario.name)
    assert theirs is not None, "no golden transcript: run `make golden`"
    ours = played[scenario.name]
    if scenario.differs is None:
        assert ours == theirs
    else:
        assert ours == goldens[GROUPKEEPER].get(scenario.name)
        assert ours != theirs, f"no longer differs: take {scenario.differs} out of docs/differences.md"


@pytest.mark.gate
def test_every_golden_transcript_is_of_a_scenario(goldens: Mapping[str, Mapping[str, Transcript]]) -> None:
    names = {scenario.name for scenario in SCENARIOS}
    on_purpose = {scenario.name for scenario in SCENARIOS if scenario.differs}

    assert goldens[KAFKA].keys() == names
    assert goldens[GROUPKEEPER].keys() == on_purpose
