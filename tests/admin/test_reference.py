# SPDX-License-Identifier: Apache-2.0
"""docs/metrics.md says of every metric what the program does."""

from pathlib import Path
from types import ModuleType

import pytest

from coordinator.admin.reference import (
    gateway_metrics,
    group_metrics,
    log_metrics,
    metrics_markdown_page,
    node_metrics,
    offset_metrics,
    request_metrics,
)
from coordinator.admin.reference.metric_help_types import MetricHelp, list_metric_help

PAGE = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"
METRICS = [metric for section in metrics_markdown_page.SECTIONS for metric in section.metrics]
UNITS = {
    "_timestamp_seconds": "Unix time",
    "_seconds_total": "seconds",
    "_seconds": "seconds",
    "_seconds_max": "seconds",
    "_bytes_total": "bytes",
    "_bytes": "bytes",
    "_ratio_max": "share of 1",
}


def test_the_page_is_what_the_program_says() -> None:
    assert PAGE.read_text() == metrics_markdown_page.render(), "run: groupkeeper metrics > docs/metrics.md"


@pytest.mark.parametrize(
    "module", [gateway_metrics, group_metrics, log_metrics, node_metrics, offset_metrics, request_metrics]
)
def test_every_metric_that_is_described_is_on_the_page(module: ModuleType) -> None:
    assert set(list_metric_help(vars(module))) <= set(METRICS)


def test_every_metric_is_described_once() -> None:
    names = [metric.name for metric in METRICS]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_a_description_is_whole(metric: MetricHelp) -> None:
    assert metric.name.startswith(("groupkeeper_", "kafka_consumergroup_"))
    assert metric.name.endswith("_total") == (metric.kind == "counter")
    for text in filter(None, (metric.text, metric.more)):
        assert text[0].isupper() or text[0] == "`"
        assert text.endswith(".")
    assert metric.since
    suffix = max((suffix for suffix in UNITS if metric.name.endswith(suffix)), key=len, default=None)
    if suffix is None:
        assert metric.unit not in UNITS.values()
    else:
        assert metric.unit == UNITS[suffix]
