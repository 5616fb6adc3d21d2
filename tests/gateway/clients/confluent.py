# SPDX-License-Identifier: Apache-2.0
"""librdkafka: produces slowly, and reads what it produced as a member of a group, over many refreshes."""

import time

import confluent_kafka as ck

from tests.gateway.clients.options import parse_options, tell


def main() -> None:
    """Do it, and say what was read."""
    options = parse_options()
    common = {
        "bootstrap.servers": options.bootstrap,
        "topic.metadata.refresh.interval.ms": options.refresh_ms,
        "metadata.max.age.ms": max(options.refresh_ms, 10) * 3,
    }
    producer = ck.Producer({**common, "acks": "all", "enable.idempotence": True})
    consumer = ck.Consumer(
        {
            **common,
            "group.id": options.group,
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 200,
        }
    )
    consumer.subscribe([options.topic])
    values: list[bytes] = []
    produced, due = 0, time.monotonic()
    while len(values) < options.count:
        if produced < options.count and time.monotonic() >= due:
            producer.produce(options.topic, str(produced).encode())
            produced += 1
            due += options.pause_ms / 1000
        producer.poll(0)
        message = consumer.poll(0.05)
        if message is not None:
            assert message.error() is None, message.error()
            values.append(message.value() or b"")
    assert producer.flush(10) == 0
    consumer.commit(asynchronous=False)
    consumer.close()
    tell(values)


if __name__ == "__main__":
    main()
