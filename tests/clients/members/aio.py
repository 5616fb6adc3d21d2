# SPDX-License-Identifier: Apache-2.0
"""A group member on aiokafka."""

import asyncio
from typing import Any

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.errors import KafkaError

from tests.clients.members.protocol import Commands, emit, emit_partitions, offsets_of, parse_options

ASSIGNORS = {"range": RangePartitionAssignor}


class Listener(ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka ships no types
    """Passes on what the client tells."""

    def on_partitions_assigned(self, assigned: Any) -> None:
        """Called by the client."""
        emit_partitions("assigned", assigned)

    def on_partitions_revoked(self, revoked: Any) -> None:
        """Called by the client."""
        emit_partitions("revoked", revoked)


async def main() -> None:
    """Join the group, poll, and obey commands until told to leave."""
    options = parse_options()
    consumer = AIOKafkaConsumer(
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
    await consumer.start()
    commands = Commands()
    while True:
        await consumer.getmany(timeout_ms=50)
        command = commands.next()
        if command is None:
            continue
        if command["command"] == "leave":
            break
        try:
            await obey(consumer, options.topic, command)
        except KafkaError as refused:
            emit("refused", error=repr(refused))
    await consumer.stop()
    emit("left")


async def obey(consumer: Any, topic: str, command: dict[str, Any]) -> None:
    """Commit or read back, and emit the answer."""
    if command["command"] == "commit":
        offsets = offsets_of(command)
        await consumer.commit({TopicPartition(topic, each): offset for each, offset in offsets.items()})
        emit("committed", offsets=offsets)
        return
    found = {each: await consumer.committed(TopicPartition(topic, each)) for each in command["partitions"]}
    emit("offsets", offsets={partition: offset for partition, offset in found.items() if offset is not None})


if __name__ == "__main__":
    asyncio.run(main())
