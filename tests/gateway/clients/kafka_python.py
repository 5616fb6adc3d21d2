# SPDX-License-Identifier: Apache-2.0
"""kafka-python."""

import argparse
import threading
import time
from typing import Any

from kafka import KafkaConsumer, KafkaProducer

from tests.gateway.clients.options import (
    COMMIT_EVERY_MS,
    HEARTBEAT_EVERY_MS,
    parse_options,
    produce,
    say_read,
)

WAIT_S = 120


class Producer:
    """Produces with kafka-python."""

    def __init__(self, options: argparse.Namespace, common: dict[str, Any]) -> None:
        self._topic = options.topic
        self._producer = KafkaProducer(
            **common, acks="all", enable_idempotence=True, transactional_id=options.transactional_id
        )
        if options.transactional_id is not None:
            self._producer.init_transactions()

    def send(self, number: int) -> None:
        """Produce a record."""
        self._producer.send(self._topic, b"%d" % number).get(WAIT_S)

    def begin(self) -> None:
        """Begin a transaction."""
        self._producer.begin_transaction()

    def commit(self) -> None:
        """Commit it."""
        self._producer.commit_transaction()

    def abort(self) -> None:
        """Abort it."""
        self._producer.abort_transaction()

    def close(self) -> None:
        """End."""
        self._producer.close(WAIT_S)


def main() -> None:
    """Read, and maybe produce, until it is over."""
    options = parse_options()
    common = {"bootstrap_servers": options.bootstrap, "metadata_max_age_ms": options.refresh_ms}
    producing = threading.Thread(target=lambda: produce(options, Producer(options, common)), daemon=True)
    if options.enough is not None:
        producing.start()
    consumer = KafkaConsumer(
        options.topic,
        **common,
        group_id=options.group,
        auto_offset_reset="earliest",
        auto_commit_interval_ms=COMMIT_EVERY_MS,
        heartbeat_interval_ms=HEARTBEAT_EVERY_MS,
        isolation_level="read_committed" if options.transactional_id else "read_uncommitted",
    )
    # Its member stops for good now and then where it joins before it knows the topic, and so has to join again at once.
    while not consumer.partitions_for_topic(options.topic) and not options.over.exists():
        time.sleep(0.05)
    while not options.over.exists():
        for records in consumer.poll(timeout_ms=100).values():
            for record in records:
                say_read(record.value)
    consumer.commit()
    consumer.close()


if __name__ == "__main__":
    main()
