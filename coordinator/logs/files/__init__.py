# SPDX-License-Identifier: Apache-2.0
"""The log in files: segments in Kafka's format, made durable by one journal per node (`storage.log_manager`)."""
