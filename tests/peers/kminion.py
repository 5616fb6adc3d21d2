# SPDX-License-Identifier: Apache-2.0
"""kminion, a monitor of lag, in the mode in which it reads `__consumer_offsets` (`scrapeMode: offsetsTopic`).

It brings no tests that a server could run, so it is watched: whether it says that it has read all there was, and
whether its metrics show what is committed before and after that. It is built from the checkout of its repository
(github.com/redpanda-data/kminion) that KMINION_SOURCE names.
"""

import http.client
import os
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from bench.ports import free_ports
from coordinator.catalogue.topic_configs import END_GROUP
from tests.peers.fetching import built_from_checkout
from tests.peers.outcome import Outcome, Report, Verdict
from tests.support import raw
from tests.support.processes import ServerProcess
from tests.support.target import Target, running_target
from tests.support.waiting import wait_until

NAME: Final = "kminion"
SOURCE: Final = "KMINION_SOURCE"
READY_TIMEOUT_S: Final = 120.0
"""It looks every 15 s whether it has read everything."""

TOPIC: Final = "watched"
GROUPS: Final = [f"watched-{number}" for number in range(5)]
PARTITIONS: Final = range(3)
END: Final = 10_000
CONFIG: Final = """\
kafka:
  brokers: ["{bootstrap}"]
minion:
  consumerGroups:
    enabled: true
    scrapeMode: offsetsTopic
    granularity: partition
  logDirs:
    enabled: false
exporter:
  host: 127.0.0.1
  port: {port}
"""
_SAMPLE: Final = re.compile(r"^(\w+)\{(.*)\} (\S+)$", re.MULTILINE)


def run(work: Path) -> Report:
    """Let it watch a server under `work`. Raises UnavailableError."""
    version, binary = built()
    with running_target(work / "server") as server:
        (port,) = free_ports(1)
        config = work / "kminion.yaml"
        config.write_text(CONFIG.format(bootstrap=server.bootstrap, port=port))
        _create_topic(server)
        _commit(server, 100)
        env = {**os.environ, "CONFIG_FILEPATH": str(config)}
        process = ServerProcess([str(binary)], work / "kminion.log", env=env)
        try:
            return Report(NAME, version, _watched(server, port))
        finally:
            process.kill9()


def _create_topic(server: Target) -> None:
    """With ends that are known: it shows no offsets without."""
    if server.kind == "kafka":
        raw.create_topic(server.bootstrap, TOPIC, len(PARTITIONS))
        return
    raw.create_topic(server.bootstrap, TOPIC, len(PARTITIONS), configs={END_GROUP: "makers"})
    raw.commit_offsets(server.bootstrap, "makers", TOPIC, dict.fromkeys(PARTITIONS, END))


def built() -> tuple[str, Path]:
    """The commit that it is built from, as far as that is known, and the program. Raises UnavailableError."""
    return built_from_checkout(NAME, SOURCE, "github.com/redpanda-data/kminion")


def _watched(server: Target, port: int) -> list[Outcome]:
    def commits_are_shown(first: int) -> Callable[[], bool]:
        expected = {group: float(_sum(first, number)) for number, group in enumerate(GROUPS)}
        return lambda: _by_group(port, "topic_offset_sum") == expected

    def lag_is_shown() -> bool:
        ends = 0 if server.kind == "kafka" else END * len(PARTITIONS)
        lags = {group: float(max(ends - _sum(5_000, n), 0)) for n, group in enumerate(GROUPS)}
        return _by_group(port, "topic_lag") == lags

    def commits_are_counted() -> bool:
        times = 2 * len(PARTITIONS)
        return _by_group(port, "offset_commits_total") == dict.fromkeys(GROUPS, float(times))

    found = [
        _outcome("it says that it has read all there was", lambda: _get(port, "/ready")[0] == 200),
        _outcome("it shows what was committed before it started", commits_are_shown(100)),
    ]
    _commit(server, 5_000)
    return [
        *found,
        _outcome("it shows what is committed since", commits_are_shown(5_000)),
        _outcome("it counts the commits", commits_are_counted),
        _outcome("it shows the lag", lag_is_shown),
    ]


def _outcome(name: str, condition: Callable[[], bool]) -> Outcome:
    began = time.monotonic()
    try:
        wait_until(condition, READY_TIMEOUT_S, what=name)
    except AssertionError as error:
        return Outcome(name, Verdict.FAILED, str(error), time.monotonic() - began)
    return Outcome(name, Verdict.PASSED, seconds=time.monotonic() - began)


def _commit(server: Target, first: int) -> None:
    """Commit in every group: no two offsets are the same."""
    for number, group in enumerate(GROUPS):
        raw.wait_for_coordinator(server.bootstrap, group)
        raw.commit_offsets(server.bootstrap, group, TOPIC, {p: first + 10 * number + p for p in PARTITIONS})


def _sum(first: int, number: int) -> int:
    return sum(first + 10 * number + p for p in PARTITIONS)


def _get(port: int, path: str) -> tuple[int, str]:
    """Status and text; 0 where nothing answers yet."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    except (OSError, http.client.HTTPException):
        return 0, ""
    finally:
        connection.close()


def _by_group(port: int, metric: str) -> Mapping[str, float]:
    """The values of one of its metrics, by group."""
    found = {}
    for name, labels, value in _SAMPLE.findall(_get(port, "/metrics")[1]):
        group = re.search(r'group_id="([^"]*)"', labels)
        if name == f"kminion_kafka_consumer_group_{metric}" and group and group[1] in GROUPS:
            found[group[1]] = float(value)
    return found
