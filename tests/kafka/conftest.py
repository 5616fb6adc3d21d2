# SPDX-License-Identifier: Apache-2.0
"""A real Kafka, its Java tools, and the servers that they are tried on."""

from collections.abc import Iterator

import pytest

from tests.kafka.broker import kafka_broker
from tests.kafka.java_shell import java_shell
from tests.support.service import Service, serving
from tests.support.target import target

__all__ = ["java_shell", "kafka_broker", "ours", "target"]


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A node of ours, in which a group that has members rebalances at once."""
    with serving(tmp_path_factory.mktemp("ours"), {"group.initial.rebalance.delay.ms": 0}) as service:
        yield service
