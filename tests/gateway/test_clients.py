# SPDX-License-Identifier: Apache-2.0
"""Real clients through a gateway to a real Kafka: every record once, over many refreshes, and no way round it."""

import json
import sys
from pathlib import Path

import pytest

from tests.gateway.connections import remote_ports
from tests.gateway.whole import Whole, descendants
from tests.support.processes import ServerProcess
from tests.support.raw import fetch_offsets
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kafka

RECORDS = 60
PAUSE_MS = 70
REFRESH_MS = 150
"""28 refreshes while the records are produced, by each of two clients."""


@pytest.mark.slow
@pytest.mark.parametrize("library", ["aio", "confluent", "java", "kafka_python"])
def test_a_client_reads_each_record_once_and_knows_no_way_round_the_gateway(
    whole: Whole, tmp_path: Path, library: str
) -> None:
    topic = group = f"once-{library}"
    whole.create_topic(topic, 3)
    command = [sys.executable, "-m", f"tests.gateway.clients.{library}"]
    command += ["--bootstrap", whole.brokers, "--topic", topic, "--group", group]
    command += ["--count", str(RECORDS), "--pause-ms", str(PAUSE_MS), "--refresh-ms", str(REFRESH_MS)]
    client = ServerProcess(command, tmp_path / "client.log")
    seen: set[int] = set()

    def ended() -> bool:
        for process in descendants(client.pid):
            seen.update(remote_ports(process))
        assert not seen & whole.real_ports, "the client has found a broker"
        return client.exit_status is not None

    try:
        wait_until(ended, 60, what=lambda: f"the client to read all:\n{client.log_tail()}")
        assert client.exit_status == 0, client.log_tail()
    finally:
        client.kill9()
    values = json.loads((tmp_path / "client.log").read_text().splitlines()[-1])
    assert sorted(values) == list(range(RECORDS))
    assert seen >= {whole.broker_port(1), whole.port}, "a broker, and our node"
    assert sum(fetch_offsets(whole.bootstrap, group).values()) == RECORDS
