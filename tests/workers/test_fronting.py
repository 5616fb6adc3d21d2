# SPDX-License-Identifier: Apache-2.0
"""A node in front of a real Kafka: groups live here, topics and records there."""

import asyncio
import socket
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import confluent_kafka as ck
import pytest
from aiokafka import AIOKafkaConsumer
from confluent_kafka.admin import AdminClient
from playwright.sync_api import expect

from bench.ports import free_port_run, free_ports
from coordinator.cli.cluster.connection import PERHAPS_A_GATEWAY
from tests.kafka.cluster import KafkaCluster
from tests.support.browser import accessibility_violations, chromium, open_tab
from tests.support.command import groupkeeper
from tests.support.overview import fetch_overview
from tests.support.raw import commit_offsets, create_topic, fetch_offsets, wait_for_coordinator
from tests.support.service import Service
from tests.support.waiting import wait_until
from tests.workers.fronting import SERVING, Fronting

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

GATEWAY = 1
"""The process behind the one worker."""
UNKNOWN_TOPIC = 3
RECORDS = 60


@pytest.fixture(scope="module")
def front(cluster: KafkaCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fronting]:
    """Two nodes of ours and two gateways; groups are not taken over here."""
    settings: dict[str, str | int] = {"workers": 2, "gateway.workers": 2, "gateway.adopt": "off"}
    front = Fronting(tmp_path_factory.mktemp("front"), cluster.bootstrap(), settings)
    try:
        front.start()
        yield front
    finally:
        front.close()


def groups_at(cluster: KafkaCluster) -> set[str]:
    listed = cluster.admin().list_consumer_groups().result(120)
    return {group.group_id for group in listed.valid}


def fetch_group(front: Fronting, group: str) -> dict[tuple[str, int], int]:
    """What a group has committed, from whichever of our nodes has it."""
    for port in (front.port, front.port + 1):
        try:
            return fetch_offsets(f"127.0.0.1:{port}", group)
        except AssertionError:
            continue
    raise AssertionError(f"neither node has {group}")


@pytest.mark.gate
async def test_a_group_of_aiokafka_lives_here(front: Fronting, cluster: KafkaCluster) -> None:
    cluster.create_topic("aio", 2)
    cluster.produce("aio", RECORDS)
    consumer = AIOKafkaConsumer(
        "aio",
        bootstrap_servers=f"127.0.0.1:{front.broker_ports + 1}",
        group_id="aio",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        metadata_max_age_ms=300,
    )
    await consumer.start()
    count = 0
    async with asyncio.timeout(120):
        while count < RECORDS:
            count += sum(map(len, (await consumer.getmany(timeout_ms=500)).values()))
    await consumer.commit()
    await consumer.stop()
    assert sum(fetch_group(front, "aio").values()) == RECORDS
    assert "aio" not in groups_at(cluster)


@pytest.fixture(scope="module")
def adopting(cluster: KafkaCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fronting]:
    """One node and one gateway, which take groups over when they are first asked for."""
    front = Fronting(tmp_path_factory.mktemp("adopting"), cluster.bootstrap())
    try:
        front.start()
        yield front
    finally:
        front.close()


def consumer_of(bootstrap: str, group: str, topic: str) -> ck.Consumer:
    consumer = ck.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])
    return consumer


def read_to(consumer: ck.Consumer, last: int) -> list[int]:
    """Read until a record of this number has come; the numbers of all that did."""
    seen: list[int] = []

    def take_piece() -> bool:
        message = consumer.poll(1.0)
        if message is not None and message.error() is None:
            seen.append(int(message.value() or b""))
        return last in seen

    wait_until(take_piece, what=lambda: f"record {last}, after {seen[-3:]}")
    return seen


def test_a_group_moves_in_where_it_is_and_not_while_it_lives(
    adopting: Fronting, cluster: KafkaCluster
) -> None:
    cluster.create_topic("moving", 1)
    cluster.produce("moving", 10)
    there = consumer_of(cluster.bootstrap(), "moving", "moving")
    assert read_to(there, 9) == list(range(10))
    there.commit(asynchronous=False)
    producer = ck.Producer({"bootstrap.servers": adopting.bootstrap})
    for number in range(10, 15):
        producer.produce("moving", str(number).encode())
    assert producer.flush(120) == 0
    here = consumer_of(adopting.bootstrap, "moving", "moving")
    log = "a group has members at the cluster"
    wait_until(lambda: here.poll(0.5) or log in adopting.log_text(), what="the group to be refused")
    assert log in adopting.log_text()
    there.close()
    assert read_to(here, 14) == list(range(10, 15))
    here.commit(asynchronous=False)
    here.close()
    assert fetch_offsets(adopting.bootstrap, "moving") == {("moving", 0): 15}
    metrics = page(adopting.metrics_port + 1)
    assert 'groupkeeper_gateway_adoptions_total{outcome="adopted"} ' in metrics
    assert value_of(metrics, 'groupkeeper_gateway_adoptions_total{outcome="live"}') > 0
    assert "groupkeeper_gateway_connections " in metrics
    # What the cluster has is older now, whatever happens here.
    adopting.kill9()
    adopting.start()
    assert fetch_offsets(adopting.bootstrap, "moving") == {("moving", 0): 15}


def test_a_group_that_was_deleted_here_does_not_get_its_old_offsets_back(
    adopting: Fronting, cluster: KafkaCluster
) -> None:
    wait_for_coordinator(cluster.bootstrap(), "deleted")
    cluster.create_topic("deleted", 1)
    commit_offsets(cluster.bootstrap(), "deleted", "deleted", {0: 30})
    assert fetch_offsets(adopting.bootstrap, "deleted") == {("deleted", 0): 30}
    admin = AdminClient({"bootstrap.servers": adopting.bootstrap})
    admin.delete_consumer_groups(["deleted"])["deleted"].result(120)
    adopting.kill9()
    adopting.start()
    assert not fetch_offsets(adopting.bootstrap, "deleted")


def test_a_live_group_is_taken_where_a_setting_says_so(cluster: KafkaCluster, tmp_path: Path) -> None:
    cluster.create_topic("taken", 1)
    cluster.produce("taken", 10)
    there = consumer_of(cluster.bootstrap(), "taken", "taken")
    assert read_to(there, 9) == list(range(10))
    there.commit(asynchronous=False)
    front = Fronting(tmp_path, cluster.bootstrap(), {"gateway.adopt.live.groups": "true"})
    front.start()
    try:
        assert fetch_offsets(front.bootstrap, "taken") == {("taken", 0): 10}
    finally:
        there.close()
        front.close()


def value_of(metrics: str, name: str) -> float:
    return next(float(line.split()[-1]) for line in metrics.splitlines() if line.startswith(f"{name} "))


def page(port: int) -> str:
    """The metrics of one process."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=120) as answer:
        text: str = answer.read().decode()
    return text


def test_many_groups_move_in_at_once(adopting: Fronting, cluster: KafkaCluster) -> None:
    cluster.create_topic("many", 1)
    for number in range(30):
        wait_for_coordinator(cluster.bootstrap(), f"many-{number}")
        commit_offsets(cluster.bootstrap(), f"many-{number}", "many", {0: number})
    found = {}
    for number in range(30):
        found[number] = fetch_offsets(adopting.bootstrap, f"many-{number}")
    assert found == {number: {("many", 0): number} for number in range(30)}
    assert fetch_offsets(adopting.bootstrap, "many-none") == {}


def test_each_process_shows_all_groups_over_http(front: Fronting, cluster: KafkaCluster) -> None:
    cluster.create_topic("seen", 1)
    groups = [f"seen-{number}" for number in range(6)]
    for group in groups:
        consumer = ck.Consumer({"bootstrap.servers": front.bootstrap, "group.id": group})
        consumer.commit(offsets=[ck.TopicPartition("seen", 0, 3)], asynchronous=False)
        consumer.close()
    pages = [fetch_overview(front.metrics_port + process, "groups", search="seen") for process in range(4)]
    assert pages == pages[:1] * 4, "two workers and two gateways"
    assert [row["group"] for row in pages[0]["groups"]] == groups
    assert len({row["node"] for row in pages[0]["groups"]}) == 2
    assert pages[0]["missing"] == []
    addresses = [f"http://127.0.0.1:{front.metrics_port + process}/" for process in range(4)]
    assert {urllib.request.urlopen(address, timeout=30).headers["Content-Type"] for address in addresses} == {
        "text/html"
    }
    parts = [fetch_overview(front.metrics_port + process, "partitions", limit="500") for process in range(4)]
    assert [part["total"] for part in parts] == [5] * 4
    assert [(row["partition"], row["state"]) for row in parts[3]["partitions"]] == [
        (number, "served") for number in range(5)
    ]
    with chromium() as browser, open_tab(browser) as tab:
        tab.goto(f"{addresses[3]}nodes")
        expect(tab.get_by_text("2 of 2 accept clients")).to_be_visible()
        expect(tab.get_by_role("row", name=f"1 {cluster.bootstrap()} reachable")).to_be_visible()
        assert accessibility_violations(tab) == ""
    for process in range(4):
        shown = groupkeeper("status", "--node", f"127.0.0.1:{front.metrics_port + process}")
        assert (shown.returncode, shown.stderr) == (0, "")
        rows = [line.split() for line in shown.stdout.splitlines()]
        assert ["GATEWAYS", "2", "of", "2"] in rows
        assert [row[2:] for row in rows if row[:1] == ["CLUSTER"] and row[1] != "ID"] == [
            ["1", "of", "1", "brokers"]
        ]


def test_each_process_shows_a_groups_members_and_ends_over_http(
    front: Fronting, cluster: KafkaCluster
) -> None:
    cluster.create_topic("looked-at", 2)
    cluster.produce("looked-at", 10, partition=1)
    consumer = ck.Consumer({"bootstrap.servers": front.bootstrap, "group.id": "looker", "client.id": "app"})
    consumer.subscribe(["looked-at"])
    wait_until(lambda: consumer.poll(0.1) is not None or consumer.assignment(), what="an assignment")
    consumer.commit(offsets=[ck.TopicPartition("looked-at", 1, 3)], asynchronous=False)
    answers = [
        [
            fetch_overview(front.metrics_port + process, path, group="looker")
            for path in ("group", "group/members", "group/offsets")
        ]
        for process in range(4)
    ]
    consumer.close()
    assert [answer[0] | {"lag": None} for answer in answers] == [answers[0][0] | {"lag": None}] * 4
    assert [answer[1:] for answer in answers] == [answers[0][1:]] * 4, "two workers and two gateways"
    group, members, offsets = answers[0]
    assert (group["state"], group["members"], group["rebalance"]) == ("Stable", 1, None)
    assert [each["cause"] for each in group["rebalances"]] == ["member_joined"]
    (member,) = members["members"]
    assert (member["client"], member["member"]) == ("app", group["leader"])
    assert (member["partitions"], member["assignment"]) == (2, {"looked-at": [0, 1]})
    assert [(row["partition"], row["offset"], row["end"], row["lag"]) for row in offsets["offsets"]] == [
        (1, 3, 10, 7)
    ]


def test_topics_are_the_clusters(tmp_path: Path, cluster: KafkaCluster) -> None:
    front = Fronting(tmp_path, cluster.bootstrap(), {"gateway.adopt": "off"})
    front.start()
    try:
        assert front.commit("g", "made", {0: 1}) == {0: UNKNOWN_TOPIC}
        cluster.create_topic("made", 1)
        front.commits_soon("g", "made", {0: 1})
        assert front.commit("g", "made", {1: 1}) == {1: UNKNOWN_TOPIC}
        cluster.grow_topic("made", 2)
        front.commits_soon("g", "made", {1: 1})
        cluster.create_topic("other", 1)
        front.commits_soon("g", "other", {0: 7})
        cluster.delete_topic("made")
        wait_until(
            lambda: fetch_offsets(front.bootstrap, "g") == {("other", 0): 7},
            what=lambda: f"the offsets of a deleted topic to go:\n{front.log_text()[-3000:]}",
        )
        assert front.commit("g", "made", {0: 1}) == {0: UNKNOWN_TOPIC}
        front.terminate()
        front.start()
        assert fetch_offsets(front.bootstrap, "g") == {("other", 0): 7}
        assert front.commit("g", "other", {0: 8}) == {0: 0}
    finally:
        front.close()


def test_a_topic_or_partition_that_is_missing_brings_the_next_look_forward(
    tmp_path: Path, cluster: KafkaCluster
) -> None:
    """By the clock the cluster is looked at once an hour."""
    front = Fronting(tmp_path, cluster.bootstrap(), {"upstream.metadata.refresh.ms": 3_600_000})
    front.start()
    try:
        cluster.create_topic("just-made", 1)
        front.commits_soon("g", "just-made", {0: 7})
        cluster.grow_topic("just-made", 2)
        front.commits_soon("g", "just-made", {1: 8})
    finally:
        front.close()


def is_at_broker(cluster: KafkaCluster, topic: str) -> bool:
    return not cluster.admin().list_topics(topic, 10).topics[topic].error


def test_ready_says_how_each_broker_is_and_a_start_waits_for_none(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    tmp_path = tmp_path_factory.mktemp("ready")  # short, as the paths of sockets have to be
    cluster = KafkaCluster(tmp_path / "kafka")
    settings: dict[str, str | int] = {"gateway.adopt": "off", "gateway.unreachable.timeout.ms": 1_000}
    front = Fronting(tmp_path / "front", cluster.bootstrap(), settings)
    try:
        front.launch()
        wait_until(lambda: front.ready().get("upstream"), what=lambda: f"/ready:\n{front.log_text()}")
        said = front.ready()
        assert (said["ready"], said["upstream"]["cluster_id"]) == (False, None)
        assert said["upstream"]["error"].startswith("upstream.bootstrap.servers: ")
        cluster.start()
        wait_until(lambda: front.ready()["complete"], what=lambda: f"the cluster: {front.ready()}")
        assert front.ready()["upstream"]["brokers"] == {"1": {"address": cluster.address(1), "error": None}}
        assert front.ready()["gateways"] == {"serving": 1, "wanted": 1}
        wait_until(lambda: front.ready(GATEWAY)["complete"], what=lambda: f"{front.ready(GATEWAY)}")
        cluster.create_topic("t", 1)
        front.commits_soon("g", "t", {0: 5})
        cluster.kill9(1)
        wait_until(lambda: not front.ready()["complete"], what="the end of the broker to be seen")
        wait_until(lambda: front.ready()["upstream"]["brokers"]["1"]["error"], what="its error")
        assert front.ready()["ready"], "groups are served"
        wait_until(lambda: not front.ready(GATEWAY)["ready"], what="clients to be sent elsewhere")
        assert cluster.address(1) in front.ready(GATEWAY)["unreachable"]["1"]
        front.terminate()
        front.start()
        assert front.ready()["upstream"]["error"]
        assert not front.ready(GATEWAY).get("ready")
        cluster.restart(1)
        wait_until(lambda: front.ready(GATEWAY).get("ready"), what=lambda: f"{front.ready(GATEWAY)}")
        wait_until(lambda: front.ready()["complete"], what=lambda: f"the cluster: {front.ready()}")
        assert fetch_offsets(front.bootstrap, "g") == {("t", 0): 5}
        front.terminate()
    finally:
        front.close()
        cluster.close()


# --- starts that cannot be


def refused(tmp_path: Path, upstream: str, *settings: str) -> str:
    """The one line of a start that ends by itself."""
    port = free_port_run(20)
    flags = ["--listen", f"127.0.0.1:{port}", "--metrics", "", "--data-dir", str(tmp_path / "data")]
    for each in (f"upstream.bootstrap.servers={upstream}", f"gateway.port.base={port + 5}", *settings):
        flags += ["--set", each]
    ended = groupkeeper("serve", *flags)
    assert ended.returncode == 1, ended.stderr
    assert "Traceback" not in ended.stderr
    return ended.stderr.splitlines()[-1]


def test_what_is_no_kafka_ends_the_start(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(1000)
                    connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        threading.Thread(target=answer, daemon=True).start()
        line = refused(tmp_path, f"127.0.0.1:{server.getsockname()[1]}")
        server.shutdown(socket.SHUT_RDWR)
    assert line.startswith("groupkeeper: upstream.bootstrap.servers: ")
    assert "does not speak Kafka's protocol" in line


def test_a_gateway_is_no_cluster(tmp_path: Path, front: Fronting) -> None:
    assert "Groupkeeper" in refused(tmp_path, front.bootstrap)


def test_topics_of_a_node_that_stood_alone_are_not_compared_with_a_clusters(
    tmp_path: Path, cluster: KafkaCluster
) -> None:
    alone = Service(tmp_path)
    alone.start()
    create_topic(alone.bootstrap, "mine", 1)
    alone.terminate()
    line = refused(tmp_path, cluster.bootstrap())
    assert line.startswith("groupkeeper: upstream.bootstrap.servers: data.dir holds topics of a node")


def test_another_cluster_is_refused(tmp_path: Path, cluster: KafkaCluster) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "upstream.json").write_text('{"version": 1, "cluster_id": "another"}')
    assert "belongs to the cluster" in refused(tmp_path, cluster.bootstrap())


def test_a_port_that_is_taken_ends_the_start(tmp_path: Path, cluster: KafkaCluster) -> None:
    port = free_port_run(20)
    with socket.create_server(("127.0.0.1", port)):
        flags = ["--listen", f"127.0.0.1:{port}", "--metrics", "", "--data-dir", str(tmp_path / "data")]
        for each in (f"upstream.bootstrap.servers={cluster.bootstrap()}", f"gateway.port.base={port + 5}"):
            flags += ["--set", each]
        ended = groupkeeper("serve", *flags)
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1] == (
        f"groupkeeper: cannot listen on 127.0.0.1:{port}: Address already in use"
    )


def test_nothing_answers_at_an_address_is_no_end(tmp_path: Path) -> None:
    (nowhere,) = free_ports(1)
    front = Fronting(tmp_path, f"127.0.0.1:{nowhere}")
    front.launch()
    try:
        wait_until(lambda: front.ready().get("upstream"), what=lambda: f"/ready:\n{front.log_text()}")
        assert front.http_status("/ready") == 503
        wait_until(lambda: SERVING in front.log_text(), what=lambda: f"all processes:\n{front.log_text()}")
        listed = groupkeeper("groups", "list", "--bootstrap", front.bootstrap)
        assert (listed.returncode, listed.stdout) == (1, "")
        assert listed.stderr.endswith(f"the server closed it{PERHAPS_A_GATEWAY}\n")
        front.terminate()
    finally:
        front.close()
