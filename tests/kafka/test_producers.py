# SPDX-License-Identifier: Apache-2.0
"""Clients that produce, or fetch, hear what is wrong: from the client as far as it shows a broker's words, and the log.

docs/differences.md has a table of what each client shows.
"""

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import aiokafka
import aiokafka.errors
import confluent_kafka
import kafka
import kafka.errors
import pytest

from coordinator.api.produce import WHY
from tests.kafka.java_shell import JavaShell
from tests.support.raw import create_topic
from tests.support.service import Service, serving
from tests.support.waiting import wait_until

TOPIC = "work"
FETCHES = "a client fetches, and gets nothing: topics hold no records here"
PRODUCES = "a client produces, and no records are kept here"
NO_TRANSACTIONS = "No transactions are coordinated here."
WAIT_S = 120


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("producers")) as service:
        create_topic(service.bootstrap, TOPIC, 2)
        yield service
        service.terminate()  # all lines of its log are written then
        assert "Traceback" not in service.log_text()
        told = [line["client_id"] for line in lines(service, PRODUCES)]
        assert len(told) == len(set(told)), "each client had one connection"
        assert len(lines(service, FETCHES)) <= 1


def lines(service: Service, event: str) -> list[dict[str, Any]]:
    """What the log has of this event by now."""
    written = [json.loads(line) for line in service.log_text().splitlines() if line.startswith("{")]
    return [line for line in written if line["event"] == event]


def logged(service: Service, event: str, client_id: str) -> dict[str, Any]:
    """The first line of the log with this event about this client, once it is there."""
    found = wait_until(
        lambda: [line for line in lines(service, event) if line["client_id"] == client_id],
        what=lambda: f"{event!r} about {client_id} in\n{service.log_text()}",
    )
    return found[0]


def with_confluent(bootstrap: str, client_id: str, *, idempotent: bool) -> str:
    errors: list[str] = []
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": bootstrap, "client.id": client_id, "enable.idempotence": idempotent}
    )
    for _ in range(2):
        producer.produce(TOPIC, b"1", partition=0, on_delivery=lambda error, _: errors.append(str(error)))
        assert producer.flush(WAIT_S) == 0
    return errors[0]


def with_kafka_python(bootstrap: str, client_id: str, *, idempotent: bool) -> str:
    producer = kafka.KafkaProducer(
        bootstrap_servers=bootstrap, client_id=client_id, enable_idempotence=idempotent
    )
    try:
        for _ in range(2):
            with pytest.raises(kafka.errors.PolicyViolationError) as refused:
                producer.send(TOPIC, b"1", partition=0).get(WAIT_S)
        return str(refused.value)
    finally:
        producer.close(timeout=5)


def with_aiokafka(bootstrap: str, client_id: str, *, idempotent: bool) -> str:
    async def produce() -> str:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=bootstrap, client_id=client_id, enable_idempotence=idempotent
        )
        await producer.start()
        try:
            for _ in range(2):
                with pytest.raises(aiokafka.errors.PolicyViolationError) as refused:
                    await asyncio.wait_for(producer.send_and_wait(TOPIC, b"1", partition=0), WAIT_S)
            return repr(refused.value)
        finally:
            await producer.stop()

    return asyncio.run(produce())


@pytest.mark.parametrize("idempotent", [False, True])
@pytest.mark.parametrize(
    ("produce", "shows"),
    [
        (with_confluent, "Broker: Policy violation"),
        (with_kafka_python, WHY),
        (with_aiokafka, "PolicyViolationError"),
    ],
)
def test_a_producer_ends_in_an_error_and_in_one_line_of_the_log(
    service: Service, produce: Callable[..., str], shows: str, *, idempotent: bool
) -> None:
    client_id = f"{produce.__name__}-{idempotent}"
    assert shows in produce(service.bootstrap, client_id, idempotent=idempotent)
    line = logged(service, PRODUCES, client_id)
    assert (line["level"], line["help"]) == (
        "warning",
        "produce to the Kafka cluster that holds the data",
    )


@pytest.mark.kafka
@pytest.mark.parametrize(
    ("transactional_ids", "shows"),
    [
        ([], f"org.apache.kafka.common.errors.PolicyViolationException: {WHY}"),
        (["payments"], NO_TRANSACTIONS),
    ],
    ids=["idempotent", "with transactions"],
)
def test_the_java_producer_shows_our_words(
    service: Service, java_shell: JavaShell, transactional_ids: list[str], shows: str
) -> None:
    ran = java_shell.run("produce", service.bootstrap, TOPIC, *transactional_ids)
    assert ran.status == 0, ran.errors
    assert shows in ran.output


def test_a_producer_with_transactions_is_in_the_log(service: Service) -> None:
    producer = kafka.KafkaProducer(
        bootstrap_servers=service.bootstrap, client_id="tx", transactional_id="payments"
    )
    try:
        with pytest.raises(kafka.errors.KafkaError, match="InvalidRequest"):
            producer.init_transactions()
    finally:
        producer.close(timeout=5)
    logged(service, "a client asks for transactions, which are not coordinated here", "tx")


def test_the_first_client_that_fetches_is_in_the_log_and_no_other(service: Service) -> None:
    for number in range(2):
        consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": service.bootstrap, "client.id": f"reader-{number}", "group.id": "readers"}
        )
        try:
            consumer.assign([confluent_kafka.TopicPartition(TOPIC, 0, 0)])
            assert consumer.poll(1.0) is None
            if number == 0:
                logged(service, FETCHES, "reader-0")
        finally:
            consumer.close()
    assert [line["client_id"] for line in lines(service, FETCHES)] == ["reader-0"]
