# SPDX-License-Identifier: Apache-2.0
"""/metrics, /health and /ready of a running node, and the page that explains the metrics."""

import json
import platform
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from coordinator.admin.reference.metrics_markdown_page import heading
from coordinator.version import __version__
from tests.support.command import groupkeeper
from tests.support.raw import commit_offsets, create_topic
from tests.support.service import Service, serving

DOC = Path(__file__).parent.parent.parent / "docs" / "metrics.md"
GATEWAYS = heading("In front of a Kafka cluster")
Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("metrics"), {"group.initial.rebalance.delay.ms": 0}) as service:
        yield service


def get(service: Service, path: str) -> tuple[int, str]:
    """Status and body of an HTTP GET."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{service.metrics_port}{path}", timeout=120) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def samples(service: Service) -> Samples:
    """Every sample by name and labels."""
    families = text_string_to_metric_families(get(service, "/metrics")[1])
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }


def test_health_and_readiness(service: Service) -> None:
    assert get(service, "/health") == (200, '{"status": "alive"}')
    status, body = get(service, "/ready")
    assert status == 200
    state = json.loads(body)
    assert state["ready"] is True
    assert state["partitions_owned"] == 50
    assert state["partitions_loading"] == []
    assert state["partitions_failed"] == {}


def test_values_follow_what_was_done(service: Service) -> None:
    create_topic(service.bootstrap, "counted", 4)
    before = samples(service)
    commit_offsets(service.bootstrap, "counted-group", "counted", {0: 5, 1: 6, 2: 7})
    after = samples(service)

    def change(name: str, **labels: str) -> float:
        key = (name, tuple(sorted(labels.items())))
        return after[key] - before.get(key, 0.0)

    assert change("groupkeeper_offset_commits_total") == 3
    assert change("groupkeeper_offsets") == 3
    assert change("groupkeeper_groups", state="Empty") == 1
    assert change("groupkeeper_requests_total", api="offset_commit") == 1
    assert change("groupkeeper_flush_duration_seconds_count") >= 1
    assert change("groupkeeper_received_bytes_total") > 0
    assert change("groupkeeper_sent_bytes_total") > 0
    assert after["groupkeeper_partitions", (("state", "owned"),)] == 50
    assert after["groupkeeper_journal_bytes", ()] >= 0
    compiled = groupkeeper("--version").stdout.endswith(
        " (compiled)\n"
    )  # what is served may be, these sources are not
    version = ("compiled", str(compiled).lower()), ("python", platform.python_version())
    assert after["groupkeeper_build_info", (*version, ("version", __version__))] == 1
    free, size = (after[f"groupkeeper_disk_{name}_bytes", ()] for name in ("free", "size"))
    assert 0 < free < size


def test_names_have_our_prefix_base_units_and_bounded_labels(service: Service) -> None:
    allowed_labels = {
        "api",
        "error",
        "state",
        "cause",
        "job",
        "le",
        "limit",
        "phase",
        "version",
        "compiled",
        "python",
    }
    for name, labels in samples(service):
        if name.startswith(("process_", "python_")):
            continue
        assert name.startswith("groupkeeper_"), name
        assert not re.search(r"_(ms|millis|kib|mib|minutes)(_|$)", name), name
        assert {label for label, _ in labels} <= allowed_labels, name


def test_the_page_explains_exactly_what_is_shown(service: Service) -> None:
    shown = {
        re.sub(r"_(bucket|count|sum)$", "", name) if "duration" in name else name
        for name, _ in samples(service)
        if name.startswith("groupkeeper_")
    }
    page, _, _ = DOC.read_text().partition(GATEWAYS)  # tests/workers/test_lag.py has those of a gateway
    explained = set(re.findall(r"^\| `(groupkeeper_\w+)`", page, re.MULTILINE))
    # A counter with labels shows nothing until there is something to count.
    empty_at_first = {
        "groupkeeper_request_errors_total",
        "groupkeeper_requests_total",
        "groupkeeper_request_duration_seconds",
        # and these only where they are asked for
        "groupkeeper_group_offset_commits_total",
        "groupkeeper_group_rebalances_total",
        "groupkeeper_upstream_up",
        "groupkeeper_upstream_broker_up",
    }
    assert shown - explained == set()
    assert explained - shown <= empty_at_first
