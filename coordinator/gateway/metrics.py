# SPDX-License-Identifier: Apache-2.0
"""What Prometheus sees of one process of a gateway. No label holds what a client has chosen."""

from collections.abc import Callable, Iterable, Mapping

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from coordinator.admin.reference.cluster import GATEWAY_ADOPTIONS, GATEWAY_CONNECTIONS


class GatewayCollector(Collector):
    """Collects the metrics of one process."""

    def __init__(self, connections: Callable[[], int], adoptions: Mapping[str, int]) -> None:
        """`adoptions` counts attempts to take a group over, by what became of them."""
        self._connections = connections
        self._adoptions = adoptions

    def collect(self) -> Iterable[Metric]:
        """All metrics."""
        yield GATEWAY_CONNECTIONS.family(self._connections())
        adoptions = GATEWAY_ADOPTIONS.family()
        for outcome, count in self._adoptions.items():
            adoptions.add_metric([outcome], count)
        yield adoptions
