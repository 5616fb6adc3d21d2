# SPDX-License-Identifier: Apache-2.0
"""What a node has read whole is carried out although its client is gone: alone, of several, and behind a gateway."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.gateway.whole import Whole
from tests.kafka.cluster import KafkaCluster
from tests.support import raw
from tests.support.leaving import PARTITIONS, check_that_all_is_carried_out
from tests.workers.nodes import Nodes

TOPIC: Final = "left"
WAITS_MS: Final = 3_600_000
"""So long a first join waits for others."""


@pytest.mark.parametrize("workers", [1, 3])
def test_of_a_node_s_own_clients(make_nodes: Callable[..., Nodes], workers: int) -> None:
    nodes = make_nodes(workers, group_initial_rebalance_delay_ms=WAITS_MS)
    raw.create_topic(nodes.address(1), TOPIC, PARTITIONS)
    check_that_all_is_carried_out(nodes.address(1), TOPIC, "own")


@pytest.mark.kafka
def test_of_a_gateway_s_clients(tmp_path: Path, cluster: KafkaCluster) -> None:
    whole = Whole(tmp_path, cluster, {"group.initial.rebalance.delay.ms": WAITS_MS})
    try:
        whole.start()
        whole.create_topic(TOPIC, PARTITIONS)
        check_that_all_is_carried_out(whole.bootstrap, TOPIC, "fronted")
    finally:
        whole.close()
