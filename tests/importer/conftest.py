# SPDX-License-Identifier: Apache-2.0
"""A JVM with Kafka's tools."""

from tests.kafka.java_shell import java_shell

__all__ = ["java_shell"]
