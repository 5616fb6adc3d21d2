# SPDX-License-Identifier: Apache-2.0
"""aiokafka."""

import argparse
import asyncio

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from tests.gateway.clients.options import (
    ABORTED,
    COMMIT_EVERY_MS,
    HEARTBEAT_EVERY_MS,
    IN_A_TRANSACTION,
    parse_options,
    say_produced,
    say_read,
)


async def produce(options: argparse.Namespace, producer: AIOKafkaProducer) -> None:
    """As `options.produce` does."""
    count = 0
    while not options.enough.exists():
        if options.transactional_id is None:
            await producer.send_and_wait(options.topic, b"%d" % count)
            count += 1
            await asyncio.sleep(options.pause_ms / 1000)
            continue
        await producer.begin_transaction()
        for _ in range(IN_A_TRANSACTION):
            await producer.send_and_wait(options.topic, b"%d" % ABORTED)
        await producer.abort_transaction()
        await producer.begin_transaction()
        for _ in range(IN_A_TRANSACTION):
            await producer.send_and_wait(options.topic, b"%d" % count)
            count += 1
            await asyncio.sleep(options.pause_ms / 1000)
        await producer.commit_transaction()
    await producer.stop()
    say_produced(count)


async def main() -> None:
    """Read, and maybe produce, until it is over."""
    options = parse_options()
    common = {"bootstrap_servers": options.bootstrap, "metadata_max_age_ms": options.refresh_ms}
    async with asyncio.TaskGroup() as tasks:
        if options.enough is not None:
            producer = AIOKafkaProducer(
                **common, acks="all", enable_idempotence=True, transactional_id=options.transactional_id
            )
            await producer.start()
            tasks.create_task(produce(options, producer))
        consumer = AIOKafkaConsumer(
            options.topic,
            **common,
            group_id=options.group,
            auto_offset_reset="earliest",
            auto_commit_interval_ms=COMMIT_EVERY_MS,
            heartbeat_interval_ms=HEARTBEAT_EVERY_MS,
            isolation_level="read_committed" if options.transactional_id else "read_uncommitted",
        )
        await consumer.start()
        while not options.over.exists():
            for records in (await consumer.getmany(timeout_ms=100)).values():
                for record in records:
                    say_read(record.value)
        await consumer.commit()
        await consumer.stop()


if __name__ == "__main__":
    asyncio.run(main())
