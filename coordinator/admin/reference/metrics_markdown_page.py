# SPDX-License-Identifier: Apache-2.0
"""Renders docs/metrics.md from the descriptions of the metrics; `groupkeeper metrics` prints the text."""

from collections.abc import Iterator
from typing import Final

from coordinator.admin.reference import (
    gateway_metrics,
    group_metrics,
    log_metrics,
    node_metrics,
    offset_metrics,
    request_metrics,
)
from coordinator.admin.reference.metric_help_types import MetricHelp, Section

BAR: Final = "\\|"
"""A bar within a cell of a table."""

HEAD: Final = """\
# Metrics

This page lists every metric; `groupkeeper metrics` generates it from the program. Prometheus scrapes them at
`http://127.0.0.1:9308/metrics` (`metrics.listen`), together with the usual `process_*` and `python_info`. With several
workers, each has its own port.

No label holds the name of a group, a member or a topic: clients choose those, so their number has no bound. There are
two exceptions, and both are bounded. With `metrics.groups.top = N`, everyone who may read /metrics sees the names of
the N groups that commit most, the N that rebalance most, and the N with the largest lag. A gateway shows
[the lag of its groups](#in-front-of-a-kafka-cluster), unless `metrics.lag = off`.

**Since** is the time from which a metric counts: `start` is the start of the process, when counters are 0; `now` means
that the value is current at the scrape. A series with the label `api`, `error` or `outcome` appears once it has
something to count.

**Over JMX** is Kafka's name for the same value; `gcm` stands for `kafka.server:type=group-coordinator-metrics`.

[deploy/prometheus.rules.yml](../deploy/prometheus.rules.yml) has alerting rules, and [runbooks.md](runbooks.md)
describes what to do at each. [deploy/grafana/groupkeeper.json](../deploy/grafana/groupkeeper.json) is a dashboard for
Grafana (Dashboards, Import), which needs a Prometheus that scrapes the nodes: health first, then requests, groups,
offsets, the log, limits, and the cluster behind a gateway. The nightly audit writes [metrics of its own](audit.md).
"""

SECTIONS: Final = (
    request_metrics.SECTION,
    group_metrics.SECTION,
    offset_metrics.SECTION,
    log_metrics.SECTION,
    node_metrics.SECTION,
    gateway_metrics.OF_LAG,
    gateway_metrics.OF_PROCESSES,
)


def render() -> str:
    """Return the text of the page."""
    return "\n".join([HEAD, *_rows(), ""])


def heading(title: str) -> str:
    """Return the title of a section in bold, with an anchor for links to the section."""
    anchor = "".join(each for each in title.lower() if each.isalnum() or each == " ").replace(" ", "-")
    return f'<a id="{anchor}"></a>**{title}**'


def _rows() -> Iterator[str]:
    yield "| metric | meaning | facts |"
    yield "|---|---|---|"
    for section in SECTIONS:
        yield f"| {heading(section.title)} | {' '.join(section.text.split())} | |"
        for metric in section.metrics:
            cells = (
                f"`{metric.name}`",
                f"{metric.text} {metric.more}".rstrip(),
                " ".join(_facts(metric, section)),
            )
            yield f"| {' | '.join(cell.replace('|', BAR) for cell in cells)} |"


def _facts(metric: MetricHelp, section: Section) -> Iterator[str]:
    yield f"{metric.kind.capitalize()}, {metric.unit}."
    if metric.labels:
        yield f"Labels: {', '.join(f'`{label}`' for label in metric.labels)}."
    yield f"Since: {metric.since}."
    if metric.elsewhere:
        yield f"{section.elsewhere}: {metric.elsewhere}."
