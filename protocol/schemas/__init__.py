# SPDX-License-Identifier: Apache-2.0
"""Kafka's schemas of messages that kafka-python lacks, as Kafka's JSON files, each named for its message.

The classes stand where the messages are used: `class XRequest(ApiMessage, load_json="protocol.schemas")`, with the
types of its fields as annotations.
"""
