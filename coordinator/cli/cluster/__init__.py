# SPDX-License-Identifier: Apache-2.0
"""What the commands ask a running cluster, as any Kafka client would: blocking, one question at a time."""
