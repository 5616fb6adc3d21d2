# SPDX-License-Identifier: Apache-2.0
"""A group member on confluent-kafka (librdkafka)."""

from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from tests.clients.members.protocol import Commands, Options, emit, emit_partitions, offsets_of, parse_options


def main() -> None:
    """Join the group, poll, and obey commands until told to leave."""
    options = parse_options()
    consumer = Consumer(configuration(options))
    consumer.subscribe(
        [options.topic],
        on_assign=lambda _, partitions: emit_partitions("assigned", partitions),
        on_revoke=lambda _, partitions: emit_partitions("revoked", partitions),
        on_lost=lambda _, partitions: emit_partitions("lost", partitions),
    )
    commands = Commands()
    while True:
        message = consumer.poll(0.05)
        if message is not None and is_fenced(message.error()):
            emit("fenced")
        command = commands.next()
        if command is None:
            continue
        if command["command"] == "leave":
            break
        try:
            obey(consumer, options.topic, command)
        except KafkaException as refused:
            emit("fenced" if is_fenced(refused.args[0]) else "refused", error=str(refused))
    consumer.close()
    emit("left")


def configuration(options: Options) -> dict[str, Any]:
    """Return librdkafka's settings."""
    chosen = {
        "bootstrap.servers": options.bootstrap,
        "group.id": options.group,
        "client.id": options.client_id,
        "partition.assignment.strategy": options.assignor,
        "session.timeout.ms": options.session_timeout_ms,
        "heartbeat.interval.ms": options.heartbeat_interval_ms,
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
    }
    if options.instance_id is not None:
        chosen["group.instance.id"] = options.instance_id
    return chosen


def obey(consumer: Consumer, topic: str, command: dict[str, Any]) -> None:
    """Commit or read back, and emit the answer."""
    if command["command"] == "commit":
        offsets = offsets_of(command)
        answer = consumer.commit(
            offsets=[TopicPartition(topic, partition, offset) for partition, offset in offsets.items()],
            asynchronous=False,
        )
        for partition in answer:
            if partition.error is not None:
                raise KafkaException(partition.error)
        emit("committed", offsets=offsets)
        return
    asked = [TopicPartition(topic, partition) for partition in command["partitions"]]
    found = consumer.committed(asked, timeout=120)
    emit("offsets", offsets={each.partition: each.offset for each in found if each.offset >= 0})


def is_fenced(error: KafkaError | None) -> bool:
    """Tell whether another member has taken over our instance id."""
    # Fencing is fatal to a client of librdkafka, and nothing else that happens in these tests is: once a heartbeat
    # has told it, every later call fails with the code for any fatal error.
    return error is not None and error.code() in {KafkaError.FENCED_INSTANCE_ID, KafkaError._FATAL}


if __name__ == "__main__":
    main()
