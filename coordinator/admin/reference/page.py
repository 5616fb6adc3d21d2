# SPDX-License-Identifier: Apache-2.0
"""Renders docs/metrics.md from the descriptions of the metrics; `groupkeeper metrics` prints the text."""

from collections.abc import Iterator
from typing import Final

from coordinator.admin.reference import gateway, groups, log, node, offsets, requests
from coordinator.admin.reference.metric_help import MetricHelp, Section

BAR: Final = "\\|"
"""A bar within a cell of a table."""

HEAD: Final = """\
# Metrics

Every metric, made from the program itself by `groupkeeper metrics`. `http://127.0.0.1:9308/metrics` (`metrics.listen`)
shows them to Prometheus, together with the usual `process_*` and `python_info`; each of several workers has a port of
its own.

No label holds the name of a group, a member or a topic: clients choose those, so their number has no bound. There are
two exceptions, and both are bounded: with `metrics.groups.top = N` the N groups that commit most, the N that rebalance
most, and the N that are furthest behind are shown by name to everybody who may read /metrics; and a gateway shows
[the lag of its groups](#in-front-of-a-kafka-cluster), unless `metrics.lag = off`.

**Since** says from when on a metric counts: `start` is the start of the process, where counters are 0; `now` is what is
true at the moment of the scrape. A series with the label `api`, `error` or `outcome` appears once it has something to
count.

**Over JMX** names what Kafka shows for the same thing; `gcm` stands for
`kafka.server:type=group-coordinator-metrics`.

[deploy/prometheus.rules.yml](../deploy/prometheus.rules.yml) has alerting rules, and [runbooks.md](runbooks.md) what to
do at each. [deploy/grafana/groupkeeper.json](../deploy/grafana/groupkeeper.json) is a dashboard for Grafana
(Dashboards, Import), which asks a Prometheus that scrapes the nodes: health first, then requests, groups, offsets, the
log, limits, and the cluster behind a gateway. The nightly audit writes [metrics of its own](audit.md).
"""

SECTIONS: Final = (
    requests.SECTION,
    groups.SECTION,
    offsets.SECTION,
    log.SECTION,
    node.SECTION,
    gateway.OF_LAG,
    gateway.OF_PROCESSES,
)


def render() -> str:
    """Return the text of the page."""
    return "\n".join([HEAD, *_rows(), ""])


def heading(title: str) -> str:
    """Return the row that begins a section, with an anchor for links to the section."""
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
