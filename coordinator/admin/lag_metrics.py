# SPDX-License-Identifier: Apache-2.0
"""The metrics of the lag of groups; metrics that kafka_exporter also has keep its names."""

from collections.abc import Callable, Iterable, Iterator

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from coordinator.admin.reference import gateway_metrics
from coordinator.lag.lag_book import LagBook, Lags


class LagCollector(Collector):
    """The metrics of the newest measurement of lag, in the detail that `metrics.lag` sets."""

    def __init__(self, book: LagBook, now_s: Callable[[], float], *, of_cluster: bool = True) -> None:
        """Create a collector; `now_s` returns the wall clock in Unix seconds.

        Without `of_cluster` the ends are declared ones, and the few groups that may be named are no sign of trouble.
        """
        self._book = book
        self._of_cluster = of_cluster
        self._now_s = now_s

    def collect(self) -> Iterable[Metric]:
        """Yield all metrics of the lag."""
        lags = self._book.newest
        yield from _groups(lags, self._now_s())
        if self._book.detail in ("topic", "partition"):
            yield from _topics(lags)
        if self._book.detail == "partition":
            yield from _partitions(lags)
        if self._of_cluster:
            yield gateway_metrics.LAG_LEFT_OUT.make_family(lags.left_out)
            yield gateway_metrics.LAG_UNKNOWN_OFFSETS.make_family(lags.unknown)


def _groups(lags: Lags, now_s: float) -> Iterator[Metric]:
    lag, stable = gateway_metrics.GROUP_LAG.make_family(), gateway_metrics.GROUP_STABLE_LAG.make_family()
    behind = gateway_metrics.GROUP_LAG_SECONDS.make_family()
    status, members = gateway_metrics.GROUP_STATUS.make_family(), gateway_metrics.GROUP_MEMBERS.make_family()
    for row in lags.groups:
        lag.add_metric([row.group], row.lag)
        stable.add_metric([row.group], row.stable_lag)
        behind.add_metric([row.group], max(0.0, now_s - row.since_ms / 1000) if row.since_ms else 0)
        status.add_metric([row.group, row.status.name.lower()], 1)
        members.add_metric([row.group], row.members)
    yield from (lag, stable, behind, status, members)


def _topics(lags: Lags) -> Iterator[Metric]:
    lag, offsets = gateway_metrics.LAG_SUM.make_family(), gateway_metrics.CURRENT_OFFSET_SUM.make_family()
    for row in lags.topics:
        lag.add_metric([row.group, row.topic], row.lag)
        offsets.add_metric([row.group, row.topic], row.offsets)
    yield from (lag, offsets)


def _partitions(lags: Lags) -> Iterator[Metric]:
    lag, offset = gateway_metrics.LAG.make_family(), gateway_metrics.CURRENT_OFFSET.make_family()
    for row in lags.partitions:
        labels = [row.group, row.topic, str(row.partition)]
        lag.add_metric(labels, row.lag)
        offset.add_metric(labels, row.offset)
    yield from (lag, offset)
