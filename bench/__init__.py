# SPDX-License-Identifier: Apache-2.0
"""Measure a consumer-group coordinator from outside, over Kafka's wire protocol, beside a real Kafka.

`python -m bench --help` lists the scenarios; bench/README.md says what each number means.
The driver builds and reads messages with kafka-python's codec and not with our own `protocol` package,
so that an error in ours cannot hide itself here.
"""
