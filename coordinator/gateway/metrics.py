# SPDX-License-Identifier: Apache-2.0
"""What Prometheus sees of one process of a gateway. No label holds what a client has chosen."""

from collections.abc import Callable, Iterable, Mapping

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from coordinator.admin.reference.cluster import (
    GATEWAY_ACCEPTED,
    GATEWAY_ADOPTIONS,
    GATEWAY_CLOSED,
    GATEWAY_CONNECT_FAILURES,
    GATEWAY_CONNECTIONS,
    GATEWAY_REFUSED,
)
from coordinator.gateway.gateway import Counts


class GatewayCollector(Collector):
    """Collects the metrics of one process."""

    def __init__(self, counts: Callable[[], Counts], adoptions: Mapping[str, int]) -> None:
        """`adoptions` counts attempts to take a group over, by what became of them."""
        self._counts = counts
        self._adoptions = adoptions

    def collect(self) -> Iterable[Metric]:
        """All metrics."""
        counts = self._counts()
        yield GATEWAY_CONNECTIONS.family(counts.open)
        yield GATEWAY_ACCEPTED.family(counts.accepted)
        yield GATEWAY_REFUSED.family(counts.refused)
        yield GATEWAY_CONNECT_FAILURES.family(counts.unreached)
        closed = GATEWAY_CLOSED.family()
        for reason, count in counts.closed.items():
            closed.add_metric([reason], count)
        yield closed
        adoptions = GATEWAY_ADOPTIONS.family()
        for outcome, count in self._adoptions.items():
            adoptions.add_metric([outcome], count)
        yield adoptions
