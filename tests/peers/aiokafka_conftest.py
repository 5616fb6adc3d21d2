# SPDX-License-Identifier: Apache-2.0
"""Copied into aiokafka's suite in the place of its `tests/conftest.py`, which runs a Kafka in a container.

What is there for the tests is the same, but the broker is the one that PEERS_ADDRESS names, without TLS and Kerberos: a
test that reaches for those is skipped. Clients log in at PEERS_SASL_ADDRESS, to a cluster whose rights and users are
changed at PEERS_SASL_CLUSTER; without them tests that log in are skipped as well.
"""

import asyncio
import gc
import os
import time
from collections.abc import Iterator
from typing import Any, NoReturn

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialUpsertion,
)

KAFKA_VERSION = "4.3.0"
NO_PORT = 1


class NotHere:
    """Skips the test that uses it."""

    def __init__(self, what: str) -> None:
        """`what` the test would need."""
        self._what = what

    def __getattr__(self, name: str) -> NoReturn:
        """Any method."""
        pytest.skip(f"needs {self._what}")

    def __truediv__(self, name: str) -> NoReturn:
        """A file in a directory that is not here."""
        pytest.skip(f"needs {self._what}")


RESOURCES = {"cluster": ResourceType.BROKER, "transactional_id": ResourceType.TRANSACTIONAL_ID}
CLUSTER = "kafka-cluster"
SCRAM = (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)
ITERATIONS = 4096
SOON_S = 120


class Rights:
    """The cluster's ACLs and users, changed as the suite does it with Kafka's tools."""

    def __init__(self, cluster: str) -> None:
        """`cluster`: where no right is asked for."""
        self._admin = AdminClient({"bootstrap.servers": cluster})
        self._given: set[AclBinding] = set()

    def list_acl(self) -> None:
        """Something that the suite does before each test."""

    def add_acl(
        self,
        *,
        operation: str,
        allow_principal: str | None = None,
        deny_principal: str | None = None,
        cluster: bool = False,
        **named: str,
    ) -> None:
        """Allow or deny an operation on the cluster, or on what is `named`; returns once the broker knows it."""
        ((kind, name),) = (("cluster", CLUSTER),) if cluster else named.items()
        resource = RESOURCES.get(kind) or ResourceType[kind.upper()]
        permission = AclPermissionType.ALLOW if allow_principal else AclPermissionType.DENY
        principal = f"User:{allow_principal or deny_principal}"
        pattern = ResourcePatternType.LITERAL
        acl = AclBinding(resource, name, pattern, principal, "*", AclOperation[operation.upper()], permission)
        for future in self._admin.create_acls([acl]).values():
            future.result(SOON_S)
        self._given.add(acl)
        self._wait_until_known()

    def cleanup(self) -> None:
        """Take back all that was given."""
        if self._given:
            self._admin.delete_acls([EVERY])[EVERY].result(SOON_S)
            self._given.clear()
            self._wait_until_known()

    def add_scram_user(self, name: str, password: str) -> None:
        """A user who may log in with either mechanism of SCRAM."""
        for mechanism in SCRAM:
            credentials = ScramCredentialInfo(mechanism, ITERATIONS)
            users: list[UserScramCredentialAlteration] = [
                UserScramCredentialUpsertion(name, credentials, password.encode())
            ]
            self._admin.alter_user_scram_credentials(users)[name].result(SOON_S)

    def _wait_until_known(self) -> None:
        while set(self._admin.describe_acls(EVERY).result(SOON_S)) != self._given:
            time.sleep(0.05)


ANYTHING: Any = None
EVERY = AclBindingFilter(
    ResourceType.ANY,
    ANYTHING,
    ResourcePatternType.ANY,
    ANYTHING,
    ANYTHING,
    AclOperation.ANY,
    AclPermissionType.ANY,
)


@pytest.fixture(scope="session")
def rights() -> Any:
    """The rights of the cluster where clients log in, if there is one."""
    cluster = os.environ.get("PEERS_SASL_CLUSTER")
    return Rights(cluster) if cluster else NotHere("SASL")


@pytest.fixture(scope="class")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """The event loop of a class of tests."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield loop
    loop.close()
    gc.collect()
    asyncio.set_event_loop(None)


@pytest.fixture(scope="class")
def setup_test_class_serverless(request: pytest.FixtureRequest, loop: asyncio.AbstractEventLoop) -> None:
    """For tests that ask no server."""
    request.cls.loop = loop


@pytest.fixture(scope="class")
def setup_test_class(request: pytest.FixtureRequest, loop: asyncio.AbstractEventLoop, rights: Any) -> None:
    """For tests that ask a server."""
    address = os.environ["PEERS_ADDRESS"]
    host, _, port = address.rpartition(":")
    cls = request.cls
    cls.loop = loop
    cls.hosts = [address]
    cls.kafka_host, cls.kafka_port = host, int(port)
    cls.kafka_sasl_plain_port = int(os.environ.get("PEERS_SASL_ADDRESS", f":{NO_PORT}").rpartition(":")[2])
    cls.kafka_ssl_port = cls.kafka_sasl_ssl_port = NO_PORT
    cls.kafka_version = KAFKA_VERSION
    cls.ssl_folder = NotHere("TLS")
    cls.acl_manager = cls.kafka_config = rights
    cls.kerberos_utils = NotHere("Kerberos")
