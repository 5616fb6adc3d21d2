# SPDX-License-Identifier: Apache-2.0
"""Bytes on disk: the `__consumer_offsets` log in Kafka's own format, and the journal that makes it durable.

The code is blocking, uses no asyncio, and knows nothing about how groups behave.
"""
