# SPDX-License-Identifier: Apache-2.0
"""The gateway, through which clients of a real Kafka cluster reach its brokers and our coordinators."""
