# SPDX-License-Identifier: Apache-2.0
"""What there is to say of a metric, and the families of samples that are made of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

START: Final = "start"
NOW: Final = "now"


@dataclass(frozen=True)
class MetricHelp:
    """One metric. `name` is whole, as Prometheus shows it; `text` is the sentence of its HELP line."""

    name: str
    text: str
    unit: str
    labels: tuple[str, ...] = ()
    since: str = START
    """From when on it counts: `START` of the process, `NOW` for what is true at this moment, or words of its own."""
    more: str = ""
    """What the page says after `text`, as Markdown."""
    elsewhere: str = ""
    """What shows this of Kafka, or of another program, as Markdown."""

    kind: ClassVar[str]


class CounterHelp(MetricHelp):
    """A number that only grows until the process ends."""

    kind = "counter"

    def family(self, value: float | None = None) -> CounterMetricFamily:
        """A family of samples, without any or with the one of a metric that has no labels."""
        family = CounterMetricFamily(self.name, self.text, labels=self.labels)
        if value is not None:
            family.add_metric([], value)
        return family


class GaugeHelp(MetricHelp):
    """A number that goes up and down."""

    kind = "gauge"

    def family(self, value: float | None = None) -> GaugeMetricFamily:
        """A family of samples, without any or with the one of a metric that has no labels."""
        family = GaugeMetricFamily(self.name, self.text, labels=self.labels)
        if value is not None:
            family.add_metric([], value)
        return family


class HistogramHelp(MetricHelp):
    """How many durations were at most so long, for some lengths."""

    kind = "histogram"

    def family(self) -> HistogramMetricFamily:
        """A family without samples."""
        return HistogramMetricFamily(self.name, self.text, labels=self.labels)


@dataclass(frozen=True)
class Section:
    """Metrics that stand together on the page."""

    title: str
    metrics: tuple[MetricHelp, ...]
    text: str = ""
    elsewhere: str = "Over JMX"
    """What stands before `elsewhere` of its metrics."""


def described(module: Mapping[str, object]) -> tuple[MetricHelp, ...]:
    """The metrics among the names of a module, in their order there."""
    return tuple(value for value in module.values() if isinstance(value, MetricHelp))
