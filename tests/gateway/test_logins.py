# SPDX-License-Identifier: Apache-2.0
"""Clients that log in through a gateway, in every way that can pass, with TLS on both sides of it."""

from collections.abc import Iterator
from typing import Any

import confluent_kafka as ck
import pytest

from tests.gateway.whole import Whole
from tests.kafka.cluster import MECHANISMS, USERS, KafkaCluster
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

PROTOCOL = "SASL_SSL"


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Whole]:
    """A broker with TLS and logins, behind a gateway with TLS of its own; alice may read and write all."""
    work = tmp_path_factory.mktemp("logins")
    cluster = KafkaCluster(work / "kafka", protocols=(PROTOCOL,), acls=True)
    assert cluster.authority is not None
    certificate, key = cluster.authority.issue("gateway")
    password = work / "password"
    password.write_text(USERS["admin"])
    settings: dict[str, str | int] = {
        "upstream.security.protocol": PROTOCOL,
        "upstream.sasl.mechanism": "PLAIN",
        "upstream.sasl.username": "admin",
        "upstream.sasl.password.file": str(password),
        "upstream.ssl.ca.location": str(cluster.ca),
        "gateway.ssl.certificate.location": str(certificate),
        "gateway.ssl.key.location": str(key),
    }
    running = Whole(work / "node", cluster, settings, PROTOCOL)
    try:
        cluster.start()
        for resource in ("TOPIC", "GROUP"):
            cluster.allow("alice", "ALL", resource, "*")
        running.start()
        yield running
    finally:
        running.close()
        cluster.close()


def client_settings(whole: Whole, mechanism: str, user: str) -> dict[str, Any]:
    """confluent-kafka's, to begin with at our own node."""
    settings = whole.cluster.client_settings(PROTOCOL, mechanism, user)
    return {**settings, "bootstrap.servers": whole.bootstrap, "log_level": 3}


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_client_logs_in_produces_and_consumes(secured: Whole, mechanism: str) -> None:
    topic = f"login-{mechanism}"
    secured.cluster.create_topic(topic)
    settings = client_settings(secured, mechanism, "alice")
    producer = ck.Producer({**settings, "acks": "all"})
    for number in range(20):
        producer.produce(topic, str(number).encode())
    assert producer.flush(30) == 0
    consumer = ck.Consumer({**settings, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    values = []
    for _ in range(600):
        message = consumer.poll(0.1)
        if message is not None:
            assert message.error() is None, message.error()
            values.append(int(message.value() or b""))
        if len(values) == 20:
            break
    assert values == list(range(20))
    consumer.commit(asynchronous=False)
    (committed,) = consumer.committed([ck.TopicPartition(topic, 0)], timeout=120)
    assert committed.offset == 20
    consumer.close()


def test_a_user_without_rights_hears_so(secured: Whole) -> None:
    secured.cluster.create_topic("closed")
    settings = client_settings(secured, "PLAIN", "bob")
    consumer = ck.Consumer({**settings, "group.id": "closed", "auto.offset.reset": "earliest"})
    consumer.subscribe(["closed"])
    message = consumer.poll(30)
    consumer.close()
    assert message is not None, "an error"
    error = message.error()
    assert error is not None
    assert error.code() in {
        ck.KafkaError.GROUP_AUTHORIZATION_FAILED,
        ck.KafkaError.TOPIC_AUTHORIZATION_FAILED,
    }


def test_a_wrong_password_is_refused_as_by_the_broker(secured: Whole) -> None:
    settings = {**client_settings(secured, "PLAIN", "alice"), "sasl.password": "wrong", "log_level": 0}
    said: list[str] = []
    producer = ck.Producer({**settings, "error_cb": lambda error: said.append(str(error))})
    wait_until(
        lambda: (
            producer.poll(0.1) is not None and any("Invalid username or password" in text for text in said)
        ),
        what=lambda: f"the refusal in {said}",
    )
