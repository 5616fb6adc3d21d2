# SPDX-License-Identifier: Apache-2.0
"""Real clients through a gateway to a real Kafka: every record once, over many refreshes, and no way round it."""

import json
import sys
from pathlib import Path

import pytest

from tests.gateway.connections import remote_ports
from tests.gateway.running import OURS_AT, Gatewayed
from tests.support.processes import ServerProcess
from tests.support.raw import fetch_offsets
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kafka

RECORDS = 60
PAUSE_MS = 70
REFRESH_MS = 150
"""28 refreshes while the records are produced, and as many each of two clients."""


@pytest.mark.slow
@pytest.mark.parametrize("library", ["aio", "confluent", "kafka_python"])
def test_a_client_reads_each_record_once_and_knows_no_way_round_the_gateway(
    gatewayed: Gatewayed, tmp_path: Path, library: str
) -> None:
    topic = group = f"once-{library}"
    gatewayed.create_topic(topic, 3)
    command = [sys.executable, "-m", f"tests.gateway.clients.{library}"]
    command += ["--bootstrap", gatewayed.bootstrap, "--topic", topic, "--group", group]
    command += ["--count", str(RECORDS), "--pause-ms", str(PAUSE_MS), "--refresh-ms", str(REFRESH_MS)]
    client = ServerProcess(command, tmp_path / "client.log")
    seen: set[int] = set()

    def ended() -> bool:
        if client.exit_status is None:
            seen.update(remote_ports(client.pid))
            assert not seen & gatewayed.real_ports, "the client has found a broker"
        return client.exit_status is not None

    try:
        wait_until(ended, 60, what=lambda: f"the client to read all:\n{client.log_tail()}")
        assert client.exit_status == 0, client.log_tail()
    finally:
        client.kill9()
    values = json.loads((tmp_path / "client.log").read_text().splitlines()[-1])
    assert sorted(values) == list(range(RECORDS))
    assert seen >= {gatewayed.base + 1, gatewayed.base + OURS_AT}, "a broker, and our node"
    assert sum(fetch_offsets(gatewayed.coordinator.bootstrap, group).values()) == RECORDS
