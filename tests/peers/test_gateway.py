# SPDX-License-Identifier: Apache-2.0
"""The peers' own suites through a gateway, with a real Kafka behind it: all that passed before passes."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import pytest

from tests.peers import franz_go, kafka_python
from tests.peers.fetching import UnavailableError
from tests.peers.outcome import Report, Verdict
from tests.support.missing import skip_or_fail

PEERS: Final[Mapping[str, Callable[[Path], Report]]] = {
    peer.NAME: peer.run for peer in (kafka_python, franz_go)
}
"""Those that a registry has and that take seconds; aiokafka's and librdkafka's take ten minutes and more."""


@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("peer", PEERS)
def test_a_whole_suite_passes(
    peer: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROUPKEEPER_TEST_TARGET", "gateway")
    try:
        report = PEERS[peer](tmp_path_factory.mktemp("peer"))  # short: sockets are below it
    except UnavailableError as error:
        skip_or_fail(f"{peer}: {error}")

    assert (report.names(Verdict.FAILED), report.lost()) == ([], []), "\n".join(report.lines())
