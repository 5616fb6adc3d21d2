# SPDX-License-Identifier: Apache-2.0
"""Bytes on disk: the `__consumer_offsets` log in Kafka's own format, and the journal that makes it durable.

Blocking, without asyncio, and without any knowledge of how groups behave.
"""
