# SPDX-License-Identifier: Apache-2.0
"""A group member on kafka-python."""

from typing import Any

from kafka import ConsumerRebalanceListener, KafkaConsumer, OffsetAndMetadata, TopicPartition
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.errors import FencedInstanceIdError, KafkaError

from tests.clients.members.protocol import Commands, emit, emit_partitions, offsets_of, parse_options

# kafka-python 3.0 throws away the result of a join that completes just as poll() times out: it joins once more, or (as
# a leader that joined because of new metadata) waits for ever. A poll much longer than a join makes that rare.
POLL_MS = 500
ASSIGNORS = {"range": RangePartitionAssignor, "cooperative-sticky": CooperativeStickyAssignor}


class Listener(ConsumerRebalanceListener):
    """Passes on what the client tells."""

    def on_partitions_assigned(self, assigned: Any) -> None:
        """Called by the client."""
        emit_partitions("assigned", assigned)

    def on_partitions_revoked(self, revoked: Any) -> None:
        """Called by the client."""
        emit_partitions("revoked", revoked)

    def on_partitions_lost(self, lost: Any) -> None:
        """Called by the client."""
        emit_partitions("lost", lost)


def main() -> None:
    """Join the group, poll, and obey commands until told to leave."""
    options = parse_options()
    consumer = KafkaConsumer(
        bootstrap_servers=options.bootstrap,
        group_id=options.group,
        client_id=options.client_id,
        group_instance_id=options.instance_id,
        partition_assignment_strategy=[ASSIGNORS[options.assignor]],
        session_timeout_ms=options.session_timeout_ms,
        heartbeat_interval_ms=options.heartbeat_interval_ms,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    )
    consumer.subscribe([options.topic], listener=Listener())
    # Know the topic's partitions before joining: a leader that learns them after its first assignment joins again.
    consumer.topics()
    commands = Commands()
    while True:
        command = commands.next()
        if command is not None and command["command"] == "leave":
            break
        try:
            if command is not None:
                obey(consumer, options.topic, command)
            consumer.poll(timeout_ms=POLL_MS)
        except FencedInstanceIdError as fenced:
            emit("fenced", error=repr(fenced))
        except KafkaError as refused:
            emit("refused", error=repr(refused))
    consumer.close(autocommit=False)
    emit("left")


def obey(consumer: Any, topic: str, command: dict[str, Any]) -> None:
    """Commit or read back, and emit the answer."""
    if command["command"] == "commit":
        offsets = offsets_of(command)
        consumer.commit(
            {
                TopicPartition(topic, each): OffsetAndMetadata(offset, "", -1)
                for each, offset in offsets.items()
            }
        )
        emit("committed", offsets=offsets)
        return
    found = {each: consumer.committed(TopicPartition(topic, each)) for each in command["partitions"]}
    emit("offsets", offsets={partition: offset for partition, offset in found.items() if offset is not None})


if __name__ == "__main__":
    main()
