# SPDX-License-Identifier: Apache-2.0
"""Real clients through a gateway to a real Kafka: every record once, over many refreshes, and no way round it."""

from pathlib import Path

import pytest

from tests.gateway.reading import Reading
from tests.gateway.whole import Whole
from tests.support.raw import fetch_offsets
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kafka

RECORDS = 60
PAUSE_MS = 70
"""In that time there are 28 refreshes while the records are produced, by each of two clients."""


@pytest.mark.slow
@pytest.mark.parametrize("library", ["aio", "confluent", "java", "kafka_python"])
def test_a_client_reads_each_record_once_and_knows_no_way_round_the_gateway(
    whole: Whole, tmp_path: Path, library: str
) -> None:
    topic = f"once-{library}"
    whole.create_topic(topic, 3)
    reading = Reading(whole, tmp_path / "client.log", library, topic, RECORDS, PAUSE_MS)
    try:
        wait_until(reading.has_ended, 60, what=lambda: f"the client to read all:\n{reading.said()}")
        assert sorted(reading.values()) == list(range(RECORDS))
    finally:
        reading.close()
    assert reading.seen_ports >= {whole.broker_port(1), whole.port}, "a broker, and our node"
    assert sum(fetch_offsets(whole.bootstrap, topic).values()) == RECORDS
