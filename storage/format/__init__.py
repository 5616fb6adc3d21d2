# SPDX-License-Identifier: Apache-2.0
"""Kafka's formats: records of the offsets topic, batches old and new, compression, markers. No file access."""
