# SPDX-License-Identifier: Apache-2.0
"""Copied into aiokafka's suite in the place of its `tests/conftest.py`, which runs a Kafka in a container.

What is there for the tests is the same, but the broker is the one that PEERS_ADDRESS names, without TLS, SASL, ACLs
and Kerberos: a test that reaches for those is skipped.
"""

import asyncio
import gc
import os
from collections.abc import Iterator
from typing import NoReturn

import pytest

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
def setup_test_class(request: pytest.FixtureRequest, loop: asyncio.AbstractEventLoop) -> None:
    """For tests that ask a server."""
    address = os.environ["PEERS_ADDRESS"]
    host, _, port = address.rpartition(":")
    cls = request.cls
    cls.loop = loop
    cls.hosts = [address]
    cls.kafka_host, cls.kafka_port = host, int(port)
    cls.kafka_ssl_port = cls.kafka_sasl_plain_port = cls.kafka_sasl_ssl_port = NO_PORT
    cls.kafka_version = KAFKA_VERSION
    cls.ssl_folder = NotHere("TLS")
    cls.acl_manager = NotHere("ACLs")
    cls.kerberos_utils = NotHere("Kerberos")
    cls.kafka_config = NotHere("SASL")
