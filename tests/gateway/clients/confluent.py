# SPDX-License-Identifier: Apache-2.0
"""librdkafka."""

import argparse
import threading
from typing import Any

import confluent_kafka as ck

from tests.gateway.clients.options import (
    COMMIT_EVERY_MS,
    HEARTBEAT_EVERY_MS,
    parse_options,
    produce,
    say_read,
)

WAIT_S = 120


class Producer:
    """Produces with librdkafka."""

    def __init__(self, options: argparse.Namespace, common: dict[str, Any]) -> None:
        chosen = {**common, "acks": "all", "enable.idempotence": True, "linger.ms": 0}
        if options.transactional_id is not None:
            chosen["transactional.id"] = options.transactional_id
        self._topic = options.topic
        self._producer = ck.Producer(chosen)
        if options.transactional_id is not None:
            self._producer.init_transactions(WAIT_S)

    def send(self, number: int) -> None:
        """Produce a record."""
        self._producer.produce(self._topic, b"%d" % number, on_delivery=self._delivered)
        assert self._producer.flush(WAIT_S) == 0, "a record was not taken"

    @staticmethod
    def _delivered(error: object, _message: object) -> None:
        assert error is None, error

    def begin(self) -> None:
        """Begin a transaction."""
        self._producer.begin_transaction()

    def commit(self) -> None:
        """Commit it."""
        self._producer.commit_transaction(WAIT_S)

    def abort(self) -> None:
        """Abort it."""
        self._producer.abort_transaction(WAIT_S)

    def close(self) -> None:
        """All was delivered."""


def main() -> None:
    """Read, and maybe produce, until it is over."""
    options = parse_options()
    common = {
        "bootstrap.servers": options.bootstrap,
        "topic.metadata.refresh.interval.ms": options.refresh_ms,
        "metadata.max.age.ms": options.refresh_ms * 3,
    }
    producing = threading.Thread(target=lambda: produce(options, Producer(options, common)), daemon=True)
    if options.enough is not None:
        producing.start()
    consumer = ck.Consumer(
        {
            **common,
            "group.id": options.group,
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": COMMIT_EVERY_MS,
            "heartbeat.interval.ms": HEARTBEAT_EVERY_MS,
            "isolation.level": "read_committed" if options.transactional_id else "read_uncommitted",
        }
    )
    consumer.subscribe([options.topic])
    while not options.over.exists():
        message = consumer.poll(0.1)
        if message is not None:
            assert message.error() is None, message.error()
            say_read(message.value() or b"")
    consumer.close()


if __name__ == "__main__":
    main()
