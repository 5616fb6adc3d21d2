# SPDX-License-Identifier: Apache-2.0
"""The golden transcripts are what a real Kafka 4.4 says."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.kafka.broker import KafkaBroker
from tests.kafka.differential.catalogue import Scenario, all_scenarios
from tests.kafka.differential.goldens import KAFKA, load
from tests.kafka.differential.play import Transcript, play_all
from tests.kafka.differential.servers import kafka_servers
from tests.kafka.differential.test_groupkeeper import chosen_scenarios

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]  # the first test plays for all


@pytest.fixture(scope="module")
def played(
    request: pytest.FixtureRequest, kafka_broker: KafkaBroker, tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, Transcript]:
    """What Kafka answers in the scenarios that this run has chosen."""
    chosen = chosen_scenarios(request)
    wanted = sorted({scenario.settings for scenario in chosen})
    with kafka_servers(tmp_path_factory.mktemp("differential"), wanted, kafka_broker) as servers:
        return play_all(chosen, servers)


@pytest.fixture(scope="module")
def golden() -> Mapping[str, Transcript]:
    """Kafka's golden transcripts."""
    return load(KAFKA)


IN_THE_GATE = "offset_fetch"
"""The module of scenarios that `make test` plays: it has groups in every state, and none waits for time to pass."""


def _with_mark(scenario: Scenario) -> Any:
    return pytest.param(scenario, marks=pytest.mark.gate if scenario.file == IN_THE_GATE else [])


@pytest.mark.parametrize("scenario", [_with_mark(each) for each in all_scenarios()], ids=str)
def test_golden_transcript(
    scenario: Scenario, played: Mapping[str, Transcript], golden: Mapping[str, Transcript]
) -> None:
    assert played[scenario.name] == golden.get(scenario.name)
