# SPDX-License-Identifier: Apache-2.0
"""The alerting rules on recorded incidents: silent before, firing as long as it lasts, over when it is over.

`python -m tests.incidents.play` records the incidents anew, on real nodes.
"""

import json
import re
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from tests.incidents.play import INCIDENTS
from tests.incidents.recording import INTERVAL_S, RECORDED, RULES, metrics_of_the_rules, recorded
from tests.support.missing import skip_or_fail
from tests.support.service import Service, serving

ALERTS: Final = tuple(re.findall(r"- alert: (\w+)", RULES.read_text()))
MINUTE: Final = 60 // INTERVAL_S


class Fires(NamedTuple):
    """An alert that must fire `after` so many samples of the incident."""

    after: int
    lasts: bool = True
    """Whether it must fire as long as the incident lasts."""
    over: int = 0
    """So many samples after the incident it must be over."""


EXPECTED: Final[Mapping[str, Mapping[str, Fires]]] = {
    "full_disk": {
        "GroupkeeperCommitsRefused": Fires(after=2 * MINUTE, over=2),
        "GroupkeeperFlushesFail": Fires(after=4, lasts=False, over=6 * MINUTE),
        "GroupkeeperPartitionsNotLoaded": Fires(after=44, over=2),
        "GroupkeeperJobFails": Fires(after=6 * MINUTE, over=2),
    },
    "damaged_partition": {"GroupkeeperPartitionsFailed": Fires(after=2 * MINUTE, over=2)},
    "long_pause": {"GroupkeeperLoopPauses": Fires(after=1, over=100)},
    "failing_checkpoints": {"GroupkeeperJobFails": Fires(after=6 * MINUTE, over=3)},
    "stuck_load": {"GroupkeeperPartitionsNotLoaded": Fires(after=9 * MINUTE, over=2)},
    "slow_disk": {"GroupkeeperFlushesSlow": Fires(after=6 * MINUTE, over=6 * MINUTE)},
    "stalled_group": {"GroupkeeperGroupStalled": Fires(after=14 * MINUTE, over=3)},
    "group_without_members": {"GroupkeeperGroupWithoutMembers": Fires(after=19 * MINUTE, over=3)},
    "growing_lag": {"GroupkeeperLagGrows": Fires(after=26 * MINUTE, over=3)},
    "growing_load": {},
    "rebalance_storm": {"GroupkeeperRebalanceStorm": Fires(after=27 * MINUTE, over=10 * MINUTE)},
    "expiring_certificate": {"GroupkeeperCertificateExpires": Fires(after=1, over=1)},
}


class ByHand(NamedTuple):
    """Samples a minute apart, and when the alert must fire on them and when it must not."""

    series: Mapping[str, str]
    firing: Sequence[str]
    silent: Sequence[str]


BY_HAND: Final[Mapping[str, ByHand]] = {
    "GroupkeeperDiskFills": ByHand(
        {"groupkeeper_disk_free_bytes": "20+0x9 5+0x9 20+0x9", "groupkeeper_disk_size_bytes": "100+0x30"},
        ["15m", "19m"],
        ["9m", "14m", "20m"],
    ),
    "GroupkeeperInternalErrors": ByHand(
        {'groupkeeper_request_errors_total{error="unknown_server_error"}': "0+0x9 1+0x20"},
        ["11m"],
        ["9m", "20m"],
    ),
    "GroupkeeperLimitNear": ByHand(
        {"groupkeeper_limit_used": "7+0x9 9+0x9 7+0x9", "groupkeeper_limit_max": "10+0x30"},
        ["10m", "19m"],
        ["9m", "20m"],
    ),
    "GroupkeeperLimitReached": ByHand(
        {"groupkeeper_limit_refusals_total": "0+0x9 1+1x9 10+0x20"}, ["11m", "19m"], ["9m", "30m"]
    ),
    "GroupkeeperWorkerDies": ByHand(
        {"groupkeeper_worker_restarts_total": "0+0x9 1+1x4 5+0x30"}, ["14m"], ["9m", "30m"]
    ),
    "GroupkeeperDown": ByHand(
        {'up{job="groupkeeper"}': "1+0x9 0+0x9 1+0x9", 'up{job="node"}': "0+0x30"},
        ["11m", "19m"],
        ["9m", "10m", "20m"],
    ),
    "GroupkeeperClusterAway": ByHand(
        {"groupkeeper_upstream_up": "1+0x9 0+0x9 1+0x9"}, ["12m", "19m"], ["9m", "11m", "20m"]
    ),
    "GroupkeeperGroupsNotTakenOver": ByHand(
        {
            'groupkeeper_gateway_adoptions_total{outcome="live"}': "0+0x9 0+5x20 100+0x30",
            'groupkeeper_gateway_adoptions_total{outcome="adopted"}': "0+5x60",
        },
        ["16m", "30m"],
        ["9m", "14m", "40m"],
    ),
    "GroupkeeperBrokerAway": ByHand(
        {'groupkeeper_upstream_broker_up{broker="1"}': "1+0x9 0+0x9 1+0x9"},
        ["12m", "19m"],
        ["9m", "11m", "20m"],
    ),
    "GroupkeeperLogCannotBeCompacted": ByHand(
        {"groupkeeper_log_uncleanable_partitions": "0+0x9 1+0x9 0+0x9"}, ["10m", "19m"], ["9m", "20m"]
    ),
    "GroupkeeperPartitionInWrongPlace": ByHand(
        {"groupkeeper_partitions_in_wrong_place": "0+0x9 1+0x9 0+0x9"}, ["11m", "19m"], ["9m", "10m", "20m"]
    ),
    "GroupkeeperLogNotCompacted": ByHand(
        {"groupkeeper_log_dirty_ratio_max": "0.95+0x400 0.2+0x9"}, ["361m", "400m"], ["359m", "402m"]
    ),
    "GroupkeeperCleanerDoesNotRun": ByHand(
        {"groupkeeper_log_cleaner_last_run_timestamp_seconds": "0+60x9 540+0x400 57000+0x20"},
        ["390m", "410m"],
        ["360m", "412m"],
    ),
}
"""The rules on what no incident here brings about."""


@pytest.fixture(scope="module")
def promtool() -> str:
    """Prometheus' own tool (Debian: prometheus)."""
    found = shutil.which("promtool")
    if found is None:
        skip_or_fail("promtool is not installed")
    return found


def run(*command: str, stdin: str | None = None) -> str:
    """What the command says; asserts that it is content."""
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr).strip()[:2_000]
    return done.stdout + done.stderr


def test_the_rules_are_rules(promtool: str) -> None:
    assert f"{len(ALERTS)} rules found" in run(promtool, "check", "rules", str(RULES))


def test_the_metrics_are_as_prometheus_likes_them(promtool: str, tmp_path: Path) -> None:
    with serving(tmp_path) as service:
        assert run(promtool, "check", "metrics", stdin=scraped(service)) == ""


def scraped(service: Service) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{service.metrics_port}/metrics", timeout=120) as answer:
        return str(answer.read().decode())


def test_every_incident_is_recorded_and_every_series_is_one_that_rules_ask_for() -> None:
    assert {path.stem for path in RECORDED.iterdir()} == INCIDENTS.keys() == EXPECTED.keys()
    wanted = metrics_of_the_rules()
    for incident in INCIDENTS:
        names = {name.partition("{")[0] for name in recorded(incident)["series"]}
        assert names <= wanted, f"{incident}: record it anew"
        of_a_node = {"groupkeeper_partitions", "groupkeeper_log_refusing_since_timestamp_seconds"}
        of_a_gateway = {"groupkeeper_gateway_certificate_expiry_timestamp_seconds"}
        assert (of_a_gateway if incident == "expiring_certificate" else of_a_node) <= names


def test_every_rule_is_tried() -> None:
    recorded_ones = {alert for alerts in EXPECTED.values() for alert in alerts}
    assert recorded_ones | BY_HAND.keys() == set(ALERTS)
    assert recorded_ones.isdisjoint(BY_HAND)


@pytest.mark.parametrize("incident", EXPECTED)
def test_alerts_fire_while_it_lasts_and_only_then(promtool: str, tmp_path: Path, incident: str) -> None:
    found = recorded(incident)
    checks = [check for alert in ALERTS for check in states(alert, EXPECTED[incident].get(alert), found)]
    assert any(check["exp_samples"] for check in checks) == bool(EXPECTED[incident])
    try_rules(promtool, tmp_path, f"{INTERVAL_S}s", found["series"], checks)


@pytest.mark.parametrize("alert", BY_HAND)
def test_alerts_of_what_is_not_played(promtool: str, tmp_path: Path, alert: str) -> None:
    tried = BY_HAND[alert]
    states = [(time, True) for time in tried.firing] + [(time, False) for time in tried.silent]
    checks = [expectation(alert, time, firing=firing) for time, firing in states]
    try_rules(promtool, tmp_path, "1m", tried.series, checks)


def try_rules(
    promtool: str, tmp_path: Path, interval: str, series: Mapping[str, str], checks: list[dict[str, Any]]
) -> None:
    """Assert that alerts fire as `checks` say where these are the samples."""
    one = {
        "interval": interval,
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": checks,
    }
    unit = {"rule_files": [str(RULES)], "evaluation_interval": interval, "tests": [one]}
    path = tmp_path / "test.json"
    path.write_text(json.dumps(unit))
    run(promtool, "test", "rules", str(path))


def states(alert: str, fires: Fires | None, found: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Whether the alert must be firing at each sample where that is certain."""
    during, after = found["phases"]["during"], found["phases"]["after"]
    silent: Sequence[int] = range(found["samples"])
    firing: Sequence[int] = ()
    if fires is not None:
        silent = [*range(during), *range(after + fires.over, found["samples"])]
        firing = range(during + fires.after, after if fires.lasts else during + fires.after + 1)
    for number in silent:
        yield expectation(alert, f"{number * INTERVAL_S}s", firing=False)
    for number in firing:
        yield expectation(alert, f"{number * INTERVAL_S}s", firing=True)


def expectation(alert: str, time: str, *, firing: bool) -> dict[str, Any]:
    return {
        "expr": f'group by (alertname) (ALERTS{{alertname="{alert}", alertstate="firing"}})',
        "eval_time": time,
        "exp_samples": [{"labels": f'{{alertname="{alert}"}}', "value": 1}] if firing else [],
    }
