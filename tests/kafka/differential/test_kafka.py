# SPDX-License-Identifier: Apache-2.0
"""The golden transcripts are what a real Kafka 4.3 says."""

from collections.abc import Mapping

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


@pytest.mark.parametrize("scenario", all_scenarios(), ids=str)
def test_golden_transcript(
    scenario: Scenario, played: Mapping[str, Transcript], golden: Mapping[str, Transcript]
) -> None:
    assert played[scenario.name] == golden.get(scenario.name)
