# SPDX-License-Identifier: Apache-2.0
"""The description of a metric, and the families of samples that are made from the description."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

GROUP: Final = "consumergroup"
"""The label with the name of a group, in all metrics: that of kafka_exporter."""
START: Final = "start"
NOW: Final = "now"


@dataclass(frozen=True)
class MetricHelp:
    """The description of one metric. `name` is complete, as in Prometheus; `text` is the sentence of the HELP line."""

    name: str
    text: str
    unit: str
    labels: tuple[str, ...] = ()
    since: str = START
    """The time from which the metric counts: `START` of the process, `NOW` for a current value, or its own words."""
    more: str = ""
    """The words that follow `text` on the page, as Markdown."""
    elsewhere: str = ""
    """The name of the same value in Kafka or another program, as Markdown."""

    kind: ClassVar[str]


class CounterHelp(MetricHelp):
    """The description of a counter: a number that only grows until the process ends."""

    kind = "counter"

    def make_family(self, value: float | None = None) -> CounterMetricFamily:
        """Return a family of samples: empty, or with one sample for a metric without labels."""
        family = CounterMetricFamily(self.name, self.text, labels=self.labels)
        if value is not None:
            family.add_metric([], value)
        return family


class GaugeHelp(MetricHelp):
    """The description of a gauge: a number that goes up and down."""

    kind = "gauge"

    def make_family(self, value: float | None = None) -> GaugeMetricFamily:
        """Return a family of samples: empty, or with one sample for a metric without labels."""
        family = GaugeMetricFamily(self.name, self.text, labels=self.labels)
        if value is not None:
            family.add_metric([], value)
        return family


class HistogramHelp(MetricHelp):
    """The description of a histogram: the number of durations up to each of several bounds."""

    kind = "histogram"

    def make_family(self) -> HistogramMetricFamily:
        """Return a family without samples."""
        return HistogramMetricFamily(self.name, self.text, labels=self.labels)


@dataclass(frozen=True)
class Section:
    """A section of docs/metrics.md, with its metrics."""

    title: str
    metrics: tuple[MetricHelp, ...]
    text: str = ""
    elsewhere: str = "Over JMX"
    """The words before the `elsewhere` of each metric."""


def list_metric_help(module: Mapping[str, object]) -> tuple[MetricHelp, ...]:
    """Return the descriptions that a module defines, in the order in which it defines them."""
    return tuple(value for value in module.values() if isinstance(value, MetricHelp))
