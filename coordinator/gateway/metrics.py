# SPDX-License-Identifier: Apache-2.0
"""The Prometheus metrics of one process of a gateway. No label holds a value that a client has chosen."""

from collections.abc import Callable, Iterable

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from coordinator.admin.reference.gateway_metrics import (
    GATEWAY_ACCEPTED,
    GATEWAY_ADOPTIONS,
    GATEWAY_CERTIFICATE_EXPIRY,
    GATEWAY_CLOSED,
    GATEWAY_CONNECT_FAILURES,
    GATEWAY_CONNECTIONS,
    GATEWAY_GROUPS_WAITED_FOR,
    GATEWAY_MEMBERS_WAITED_FOR,
    GATEWAY_REFUSED,
)
from coordinator.gateway.adoption import Adoption, AwaitedCounts
from coordinator.gateway.gateway import ConnectionCounts


class GatewayCollector(Collector):
    """Collects the metrics of one process."""

    def __init__(
        self,
        counts: Callable[[], ConnectionCounts],
        adoption: Adoption | None,
        certificate_expiry_s: int | None,
    ) -> None:
        """Report the takeovers of `adoption` and when the certificate expires; None for a gateway without them."""
        self._counts = counts
        self._adoption = adoption
        self._certificate_expiry_s = certificate_expiry_s

    def collect(self) -> Iterable[Metric]:
        """Return all metrics with their current values."""
        counts = self._counts()
        yield GATEWAY_CONNECTIONS.make_family(counts.open)
        yield GATEWAY_ACCEPTED.make_family(counts.accepted)
        yield GATEWAY_REFUSED.make_family(counts.refused)
        yield GATEWAY_CONNECT_FAILURES.make_family(counts.unreached)
        closed = GATEWAY_CLOSED.make_family()
        for reason, count in counts.closed.items():
            closed.add_metric([reason], count)
        yield closed
        if self._certificate_expiry_s is not None:
            yield GATEWAY_CERTIFICATE_EXPIRY.make_family(self._certificate_expiry_s)
        yield from self._moving()

    def _moving(self) -> Iterable[Metric]:
        adoptions = GATEWAY_ADOPTIONS.make_family()
        count_awaited = AwaitedCounts(0, 0)
        if self._adoption is not None:
            count_awaited = self._adoption.count_wanted_groups_left_at_cluster()
            for outcome, count in self._adoption.counts.items():
                adoptions.add_metric([outcome], count)
        yield GATEWAY_GROUPS_WAITED_FOR.make_family(count_awaited.groups)
        yield GATEWAY_MEMBERS_WAITED_FOR.make_family(count_awaited.members)
        yield adoptions
