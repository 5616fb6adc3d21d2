# SPDX-License-Identifier: Apache-2.0
"""aiokafka: produces slowly, and reads what it produced as a member of a group, over many refreshes."""

import asyncio

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from tests.gateway.clients.options import parse_options, tell


async def main() -> None:
    """Do it, and say what was read."""
    options = parse_options()
    common = {"bootstrap_servers": options.bootstrap, "metadata_max_age_ms": options.refresh_ms}
    producer = AIOKafkaProducer(**common, acks="all")
    consumer = AIOKafkaConsumer(
        options.topic,
        **common,
        group_id=options.group,
        auto_offset_reset="earliest",
        auto_commit_interval_ms=200,
    )
    await producer.start()
    await consumer.start()

    async def produce() -> None:
        for number in range(options.count):
            await producer.send_and_wait(options.topic, str(number).encode())
            await asyncio.sleep(options.pause_ms / 1000)

    producing = asyncio.create_task(produce())
    values: list[bytes] = []
    while len(values) < options.count:
        for records in (await consumer.getmany(timeout_ms=200)).values():
            values += [record.value for record in records]
    await producing
    await consumer.commit()

    await consumer.stop()
    await producer.stop()
    tell(values)


if __name__ == "__main__":
    asyncio.run(main())
