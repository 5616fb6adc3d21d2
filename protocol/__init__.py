# SPDX-License-Identifier: Apache-2.0
"""Kafka's protocol: frames, headers, error codes, versions and message codecs.

Imports no other package of ours, no asyncio, and opens no files; `protocol.codegen`, which writes `protocol.hot`, is a
command. Importing `protocol` or `protocol.hot` does not import kafka-python; only `protocol.kafka_python_messages`
does.
"""
