# SPDX-License-Identifier: Apache-2.0
"""kafka-python: produces slowly, and reads what it produced as a member of a group, over many refreshes."""

import time

from kafka import KafkaConsumer, KafkaProducer

from tests.gateway.clients.options import parse_options, tell


def main() -> None:
    """Do it, and say what was read."""
    options = parse_options()
    common = {"bootstrap_servers": options.bootstrap, "metadata_max_age_ms": options.refresh_ms}
    producer = KafkaProducer(**common, acks="all")
    consumer = KafkaConsumer(
        options.topic,
        **common,
        group_id=options.group,
        auto_offset_reset="earliest",
        auto_commit_interval_ms=200,
    )
    values: list[bytes] = []
    produced, due = 0, time.monotonic()
    while len(values) < options.count:
        if produced < options.count and time.monotonic() >= due:
            producer.send(options.topic, str(produced).encode())
            produced += 1
            due += options.pause_ms / 1000
        for records in consumer.poll(timeout_ms=50).values():
            values += [record.value for record in records]
    producer.flush(10)
    consumer.commit()
    consumer.close()
    producer.close()
    tell(values)


if __name__ == "__main__":
    main()
