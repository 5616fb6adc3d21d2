# SPDX-License-Identifier: Apache-2.0
"""The lag of groups in front of a Kafka cluster, under kafka_exporter's names where it has one."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from coordinator.upstream.lag import Detail, LagBook, Lags

PREFIX: Final = "groupkeeper_"
BY_GROUP: Final = ["consumergroup"]
BY_TOPIC: Final = ["consumergroup", "topic"]
BY_PARTITION: Final = ["consumergroup", "topic", "partition"]


class LagCollector(Collector):
    """What the newest measurement found, as fine as `metrics.lag` wants it."""

    def __init__(self, book: LagBook, detail: Detail, now_s: Callable[[], float]) -> None:
        """`now_s` is the wall clock, in Unix seconds."""
        self._book = book
        self._detail = detail
        self._now_s = now_s

    def collect(self) -> Iterable[Metric]:
        """All metrics of it."""
        lags = self._book.newest
        yield from _groups(lags, self._now_s())
        if self._detail in ("topic", "partition"):
            yield from _topics(lags)
        if self._detail == "partition":
            yield from _partitions(lags)
        yield GaugeMetricFamily(
            PREFIX + "lag_left_out",
            "Groups, topics or partitions of groups with less lag than the ten thousand that are shown of each.",
            value=lags.left_out,
        )
        yield GaugeMetricFamily(
            PREFIX + "lag_unknown_offsets",
            "Committed offsets in partitions whose end the cluster does not say now; no lag counts them.",
            value=lags.unknown,
        )


def _groups(lags: Lags, now_s: float) -> Iterator[Metric]:
    lag = GaugeMetricFamily(
        PREFIX + "group_lag", "Records behind the ends of all partitions.", labels=BY_GROUP
    )
    stable = GaugeMetricFamily(
        PREFIX + "group_stable_lag", "As readers with read_committed count it.", labels=BY_GROUP
    )
    behind = GaugeMetricFamily(
        PREFIX + "group_lag_seconds",
        "How long ago the oldest end was seen that the group has not reached.",
        labels=BY_GROUP,
    )
    for row in lags.groups:
        lag.add_metric([row.group], row.lag)
        stable.add_metric([row.group], row.stable_lag)
        behind.add_metric([row.group], max(0.0, now_s - row.since_ms / 1000) if row.since_ms else 0)
    yield from (lag, stable, behind)


def _topics(lags: Lags) -> Iterator[Metric]:
    lag = GaugeMetricFamily(
        "kafka_consumergroup_lag_sum", "Records behind the ends of a topic's partitions.", labels=BY_TOPIC
    )
    offsets = GaugeMetricFamily(
        "kafka_consumergroup_current_offset_sum", "Committed offsets of a topic, summed up.", labels=BY_TOPIC
    )
    for row in lags.topics:
        lag.add_metric([row.group, row.topic], row.lag)
        offsets.add_metric([row.group, row.topic], row.offsets)
    yield from (lag, offsets)


def _partitions(lags: Lags) -> Iterator[Metric]:
    lag = GaugeMetricFamily(
        "kafka_consumergroup_lag", "Records behind the end of a partition.", labels=BY_PARTITION
    )
    offset = GaugeMetricFamily(
        "kafka_consumergroup_current_offset", "The committed offset of a partition.", labels=BY_PARTITION
    )
    for row in lags.partitions:
        labels = [row.group, row.topic, str(row.partition)]
        lag.add_metric(labels, row.lag)
        offset.add_metric(labels, row.offset)
    yield from (lag, offset)
