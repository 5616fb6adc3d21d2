# SPDX-License-Identifier: Apache-2.0
"""Every query of the dashboard, and every alerting rule, asked of a real Prometheus that scrapes a node under load."""

import json
import math
import re
import shutil
import urllib.error
import urllib.parse
import urllib.request
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Producer
from kafka.protocol.consumer.group import JoinGroupRequest, LeaveGroupRequest, SyncGroupRequest

from bench.ports import free_ports
from tests.kafka.broker import KafkaBroker
from tests.support.missing import skip_or_fail
from tests.support.processes import REPOSITORY, ServerProcess
from tests.support.raw import RawConnection, commit_offsets, create_topic, heartbeat, wait_for_coordinator
from tests.support.service import Service, serving
from tests.support.waiting import wait_until
from tests.workers.fronting import Fronting

DASHBOARD: Final[Mapping[str, Any]] = json.loads(
    (REPOSITORY / "deploy" / "grafana" / "groupkeeper.json").read_text()
)
RULES: Final = REPOSITORY / "deploy" / "prometheus.rules.yml"
METRICS_PAGE: Final = (REPOSITORY / "docs" / "metrics.md").read_text()
PANELS: Final = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
QUERIES: Final = {
    f"{panel['title']} {target['refId']}": target["expr"] for panel in PANELS for target in panel["targets"]
}
OF_GATEWAYS: Final = re.compile("groupkeeper_(gateway|upstream|group_lag|group_status|lag)_?")
JOB: Final = "groupkeeper"


class Prometheus:
    """A Prometheus that scrapes some processes each second."""

    def __init__(self, binary: str, work: Path, *targets: str) -> None:
        (port,) = free_ports(1)
        self._address = f"127.0.0.1:{port}"
        config = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(RULES)],
            "scrape_configs": [{"job_name": JOB, "static_configs": [{"targets": targets}]}],
        }
        (work / "prometheus.yml").write_text(json.dumps(config))  # which is YAML, too
        flags = {
            "config.file": work / "prometheus.yml",
            "storage.tsdb.path": work / "tsdb",
            "web.listen-address": self._address,
        }
        command = [binary, *(f"--{name}={value}" for name, value in flags.items())]
        self.process = ServerProcess(command, work / "prometheus.log", cwd=work)

    def ask(self, path: str, **arguments: str) -> Any:
        """The data of an answer of its HTTP API; raises AssertionError with its error."""
        url = f"http://{self._address}/api/v1/{path}?{urllib.parse.urlencode(arguments)}"
        try:
            with urllib.request.urlopen(url, timeout=120) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{arguments}: {error.read().decode()}") from error

    def is_up(self) -> bool:
        """Whether it has started and scraped the node."""
        try:
            with urllib.request.urlopen(f"http://{self._address}/-/ready", timeout=120):
                return bool(self.values(f'up{{job="{JOB}"}}'))
        except OSError:
            return False

    def values(self, expression: str) -> list[float]:
        """The values of an instant query that are numbers."""
        found = [float(series["value"][1]) for series in self.ask("query", query=expression)["result"]]
        return [value for value in found if not math.isnan(value)]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    settings = {"metrics.groups.top": 5, "group.initial.rebalance.delay.ms": 50}
    with serving(tmp_path_factory.mktemp("node"), settings) as service:
        create_topic(service.bootstrap, "orders", 2)
        yield service


@contextmanager
def scraping(work: Path, *ports: int) -> Iterator[Prometheus]:
    """A Prometheus that has scraped these ports of this host."""
    binary = shutil.which("prometheus")
    if binary is None:
        skip_or_fail("Prometheus is not installed")
    prometheus = Prometheus(binary, work, *(f"127.0.0.1:{port}" for port in ports))
    try:
        wait_until(prometheus.is_up, what=prometheus.process.log_tail)
        yield prometheus
    finally:
        prometheus.process.terminate()


@pytest.fixture(scope="module")
def prometheus(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    with scraping(tmp_path_factory.mktemp("prometheus"), service.metrics_port) as prometheus:
        yield prometheus


def some_load(service: Service) -> None:
    """A commit, a group that forms and ends, and an error."""
    commit_offsets(service.bootstrap, "committer", "orders", {0: 1, 1: 2})
    assert heartbeat(service.bootstrap, "committer", 1, "nobody")
    with RawConnection(service.bootstrap) as connection:
        protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"")
        joined = connection.call(
            JoinGroupRequest(
                group_id="workers",
                session_timeout_ms=10_000,
                rebalance_timeout_ms=10_000,
                member_id="",
                protocol_type="consumer",
                protocols=[protocol],
            ),
            3,
        )
        member = {"group_id": "workers", "member_id": joined.member_id}
        connection.call(
            SyncGroupRequest(
                **member,
                generation_id=joined.generation_id,
                assignments=[
                    SyncGroupRequest.SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"")
                ],
            ),
            2,
        )
        connection.call(LeaveGroupRequest(**member), 1)


def filled_in(expression: str) -> str:
    """A query as Grafana sends it."""
    variables = {"$__rate_interval": "5s", "$instance": ".*", "$job": JOB}
    for name, value in variables.items():
        expression = expression.replace(name, value)
    assert "$" not in expression, expression
    return expression


def test_every_query_has_an_answer_under_load(service: Service, prometheus: Prometheus) -> None:
    unanswered = {name: query for name, query in QUERIES.items() if not OF_GATEWAYS.search(query)}
    assert len(unanswered) > 30

    def answered() -> bool:
        some_load(service)
        for name, expression in list(unanswered.items()):
            if prometheus.values(filled_in(expression)):
                del unanswered[name]
        return not unanswered

    wait_until(answered, what=lambda: f"answers to {unanswered}", interval_s=0.2)


@pytest.mark.kafka
def test_every_query_of_a_gateway_has_an_answer(
    kafka_broker: KafkaBroker, tmp_path_factory: pytest.TempPathFactory
) -> None:
    topic, group = f"lag-{uuid.uuid4().hex[:8]}", "behind"
    create_topic(kafka_broker.bootstrap, topic, 1)
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap})
    for number in range(7):
        producer.produce(topic, str(number), partition=0)
    assert producer.flush(30) == 0
    unanswered = {name: query for name, query in QUERIES.items() if OF_GATEWAYS.search(query)}
    assert len(unanswered) >= 6
    settings = {"metrics.lag.interval.ms": 1_000}
    gateway = Fronting(tmp_path_factory.mktemp("gateway"), kafka_broker.bootstrap, settings)
    try:
        gateway.start()
        wait_for_coordinator(gateway.bootstrap, group)
        commit_offsets(gateway.bootstrap, group, topic, {0: 3})
        ports = gateway.metrics_port, gateway.metrics_port + 1
        with scraping(tmp_path_factory.mktemp("scraping"), *ports) as prometheus:

            def answered() -> bool:
                for name, expression in list(unanswered.items()):
                    if prometheus.values(filled_in(expression)):
                        del unanswered[name]
                return not unanswered

            wait_until(answered, what=lambda: f"answers to {unanswered}", interval_s=0.2)
            (lag,) = (query for name, query in QUERIES.items() if name.startswith("Lag by group "))
            wait_until(lambda: prometheus.values(filled_in(lag)) == [4], what="the lag of 4 records")
            (up,) = (query for name, query in QUERIES.items() if name.startswith("Brokers that answer "))
            assert prometheus.values(filled_in(up)) == [1]
    finally:
        gateway.close()


def test_what_is_shown_is_what_happens(service: Service, prometheus: Prometheus) -> None:
    """The queries that alerts and people go by have the right values, and not just any."""

    def shown(title: str) -> list[float]:
        (expression,) = [query for name, query in QUERIES.items() if name.startswith(f"{title} ")]
        return prometheus.values(filled_in(expression))

    assert shown("Partitions served") == [50]
    assert shown("Partitions that cannot be written") == [0]
    assert shown("Version") == [1]
    ((free,)) = shown("Free disk")
    assert 0 < free < 1
    (pause,) = shown("Longest pause of late")
    assert pause < 60

    def share_is_plausible() -> bool:
        some_load(service)
        shares = shown("The slowest member's share of rebalances")
        return bool(shares) and sum(shares) <= 1

    wait_until(share_is_plausible, what="the share of the slowest member", interval_s=0.2)


def test_the_variables_and_the_annotation_find_the_node(service: Service, prometheus: Prometheus) -> None:
    variables = {each["name"]: each for each in DASHBOARD["templating"]["list"]}
    assert list(variables) == ["datasource", "job", "instance"]
    for name, wanted in (("job", JOB), ("instance", f"127.0.0.1:{service.metrics_port}")):
        found = re.fullmatch(r"label_values\((.+), (\w+)\)", variables[name]["query"]["query"])
        assert found is not None
        series = prometheus.ask("series", **{"match[]": filled_in(found.group(1))})
        assert {one[found.group(2)] for one in series} == {wanted}
    (starts,) = DASHBOARD["annotations"]["list"]
    prometheus.ask("query", query=filled_in(starts["expr"]))


def test_the_alerting_rules_are_evaluated_without_errors(prometheus: Prometheus) -> None:
    def rules() -> list[dict[str, Any]]:
        groups = prometheus.ask("rules")["groups"]
        return [rule for group in groups for rule in group["rules"]]

    wait_until(lambda: all(rule["health"] != "unknown" for rule in rules()), what="the rules' evaluation")
    assert {rule["name"]: rule["lastError"] for rule in rules() if rule["health"] != "ok"} == {}


def test_the_queries_ask_for_metrics_that_the_page_explains() -> None:
    known = set(re.findall(r"groupkeeper_\w+", METRICS_PAGE))
    for name, expression in QUERIES.items():
        for metric in re.findall(r"groupkeeper_\w+", expression):
            assert re.sub(r"_(bucket|sum|count)$", "", metric) in known, name


def test_panels_have_places_and_words_of_their_own() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    assert all(panel["description"].endswith(".") for panel in PANELS)
