# SPDX-License-Identifier: Apache-2.0
"""The requests of commands to a running cluster, as any Kafka client sends them: blocking, one at a time."""
