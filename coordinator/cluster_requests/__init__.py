# SPDX-License-Identifier: Apache-2.0
"""Requests to a Kafka cluster as data: how each is built and read, and which errors soon pass. Pure: no I/O, no clock.

`upstream` sends them on the event loop, and the command line with blocking calls.
"""
