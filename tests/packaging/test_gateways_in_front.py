# SPDX-License-Identifier: Apache-2.0
"""The gateways of deploy/, in front of a real Kafka: a group reads through them, by the ports that they open.

Only the addresses are others than in the files: everything is on loopback.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.request import urlopen

import pytest
import yaml
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from bench.installed import ROOT, groupkeeper
from bench.ports import free_port_run
from tests.kafka.broker import KafkaBroker
from tests.packaging.compose import merged
from tests.packaging.image import stages
from tests.support.processes import ServerProcess, environment
from tests.workers.fronting import wait_until_all_serve

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

IMAGE: Final = stages(ROOT / "Dockerfile")["server"].environment()
COMPOSE: Final = merged(["compose.yaml", "gateway.yaml"])["services"]
BROKER_ID: Final = 1  # one of those in each file
CLIENTS, METRICS, BROKERS = 9092, 9308, 10_000


@dataclass(frozen=True)
class Deployment:
    """What a gateway is started with, and the ports through which it is reached."""

    variables: Mapping[str, str]
    ports: frozenset[int]


def on_kubernetes() -> Deployment:
    text = (ROOT / "deploy" / "kubernetes" / "gateway.yaml").read_text()
    objects = {each["kind"]: each for each in yaml.safe_load_all(text)}
    (container,) = objects["StatefulSet"]["spec"]["template"]["spec"]["containers"]
    given = {each["name"]: each["value"] for each in container["env"]}
    ports = frozenset(port["port"] for port in objects["Service"]["spec"]["ports"])
    return Deployment(IMAGE | given, ports)


def with_compose() -> Deployment:
    node = COMPOSE["groupkeeper"]
    ports = [port.split(":") for port in node["ports"]]
    assert all(outside == inside for _, outside, inside in ports), "clients use the ports that they are told"
    return Deployment(IMAGE | node["environment"], frozenset(int(inside) for _, _, inside in ports))


def with_systemd() -> Deployment:
    lines = (ROOT / "deploy" / "systemd" / "gateway.env").read_text().splitlines()
    given = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    return Deployment(given, frozenset(range(1, 65_536)))  # nothing is between


def on_loopback(variables: Mapping[str, str], first: int, broker: KafkaBroker) -> dict[str, str]:
    """The variables with addresses here: our ports from `first` on, in the same order."""
    ours = {
        "GROUPKEEPER_LISTEN": (f"0.0.0.0:{CLIENTS}", f"127.0.0.1:{first}"),
        "GROUPKEEPER_METRICS_LISTEN": (None, f"127.0.0.1:{first + 4}"),
        "GROUPKEEPER_GATEWAY_PORT_BASE": (str(BROKERS), str(first + 10)),
        "GROUPKEEPER_UPSTREAM_BOOTSTRAP_SERVERS": (None, broker.bootstrap),
    }
    for name, (theirs, _) in ours.items():
        assert theirs in (None, variables[name])
    assert variables["GROUPKEEPER_METRICS_LISTEN"].endswith(f":{METRICS}")
    host = "GROUPKEEPER_GATEWAY_HOST"
    told = {host: "localhost"} if host in variables else {"GROUPKEEPER_ADVERTISE": f"localhost:{first}"}
    assert told.keys() <= variables.keys()
    return {**variables, **{name: here for name, (_, here) in ours.items()}, **told}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """The broker of the compose file, with a topic; its image makes server.properties of the variables."""
    given = {
        name.removeprefix("KAFKA_").lower().replace("_", "."): value
        for name, value in COMPOSE["kafka"]["environment"].items()
    }
    for place in ("listeners", "advertised.listeners", "controller.quorum.voters", "log.dirs"):
        del given[place]
    assert given["node.id"] == BROKER_ID
    broker = KafkaBroker(tmp_path_factory.mktemp("kafka"), given)
    try:
        broker.start()
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.create_topics([NewTopic("work", 1)])["work"].result(120)
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        producer.produce("work", b"a record")
        assert producer.flush(60) == 0
        yield broker
    finally:
        broker.close()


@pytest.mark.parametrize("deployment", [on_kubernetes, with_compose, with_systemd])
def test_a_group_reads_through_the_gateway(
    deployment: Callable[[], Deployment], broker: KafkaBroker, tmp_path: Path
) -> None:
    deployed, first = deployment(), free_port_run(20)
    variables = on_loopback(deployed.variables, first, broker) | {
        "GROUPKEEPER_DATA_DIR": str(tmp_path / "data")
    }
    gateway = ServerProcess([*groupkeeper(), "serve"], tmp_path / "log", env=environment(variables))
    try:
        wait_until_all_serve(gateway)
        reads_and_commits(f"127.0.0.1:{first}", f"orders-{deployment.__name__}", first)
        for process in range(2):
            with urlopen(f"http://127.0.0.1:{first + 4 + process}/ready", timeout=30) as answer:
                assert answer.status == 200
        assert {CLIENTS, BROKERS + BROKER_ID, METRICS, METRICS + 1} <= deployed.ports
    finally:
        assert gateway.terminate() == 0, gateway.log_tail()


def reads_and_commits(bootstrap: str, group: str, first: int) -> None:
    """A member of the group reads the record; the addresses that it was told are those of the node and the broker."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"})
    told = {(node.host, node.port) for node in consumer.list_topics(timeout=120).brokers.values()}
    assert told == {("localhost", first), ("localhost", first + 10 + BROKER_ID)}
    consumer.subscribe(["work"])
    record = consumer.poll(120)
    assert record is not None
    assert record.error() is None
    consumer.commit(asynchronous=False)
    (committed,) = consumer.committed([TopicPartition("work", 0)], timeout=120)
    assert committed.offset == 1
    consumer.close()
