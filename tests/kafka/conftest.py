# SPDX-License-Identifier: Apache-2.0
"""A real Kafka, its Java tools, and the server that they are tried on."""

from tests.kafka.broker import kafka_broker
from tests.kafka.java_shell import java_shell
from tests.support.target import target

__all__ = ["java_shell", "kafka_broker", "target"]
