# SPDX-License-Identifier: Apache-2.0
"""A consumer as anybody would write it on confluent-kafka; it says on standard output, in JSON, what it does.

    {"assigned": {partition: offset}}      it holds these partitions and goes on at these offsets
    {"sent": {partition: offset}}          it is about to commit
    {"acknowledged": {partition: offset}}  the coordinator has said that the commit is kept

Groupkeeper keeps no messages, so there are none to fetch: the consumer counts as if it had handled some.
It leaves the group when its standard input ends.
"""

import json
import select
import sys
import time
from typing import Final

from confluent_kafka import Consumer, KafkaException, TopicPartition

COMMIT_EVERY_S: Final = 0.2
POLL_S: Final = 0.05


class Work:
    """The partitions held now, and how far each has been handled."""

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._next: dict[int, int] = {}

    def assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Go on where the group has got to, whichever member did the work before."""
        committed = consumer.committed(partitions, timeout=20)
        self._next = {each.partition: max(each.offset, 0) for each in committed}
        tell("assigned", self._next)

    def revoked(self, _: Consumer, __: list[TopicPartition]) -> None:
        """Hold nothing until the next assignment."""
        self._next = {}

    def handle(self) -> None:
        """Get on with each partition, by 1 to 5 records, so that their offsets differ."""
        self._next = {partition: at + 1 + partition * 7 % 5 for partition, at in self._next.items()}

    def commit(self, consumer: Consumer) -> None:
        """Commit and wait for the answer; a refusal is made up for by the next commit, as the offsets only grow."""
        offsets = dict(self._next)
        tell("sent", offsets)
        try:
            answer = consumer.commit(
                offsets=[TopicPartition(self._topic, partition, at) for partition, at in offsets.items()],
                asynchronous=False,
            )
        except KafkaException as refused:
            sys.stderr.write(f"not committed: {refused}\n")
            return
        kept = {each.partition for each in answer or () if each.error is None}
        tell("acknowledged", {partition: at for partition, at in offsets.items() if partition in kept})

    @property
    def any(self) -> bool:
        """Whether there is a partition to work on."""
        return bool(self._next)


def main() -> None:
    """Join, work and commit until standard input ends."""
    bootstrap, group, topic, name, session_timeout_ms = sys.argv[1:]
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "client.id": name,
            "session.timeout.ms": int(session_timeout_ms),
            "heartbeat.interval.ms": 500,  # a rebalance is noticed this soon
            "reconnect.backoff.max.ms": 500,
            "enable.auto.commit": False,
        }
    )
    work = Work(topic)
    consumer.subscribe([topic], on_assign=work.assigned, on_revoke=work.revoked, on_lost=work.revoked)
    commit_at = 0.0
    while not select.select([sys.stdin], [], [], 0)[0]:
        consumer.poll(POLL_S)
        if work.any and time.monotonic() >= commit_at:
            work.handle()
            work.commit(consumer)
            commit_at = time.monotonic() + COMMIT_EVERY_S
    consumer.close()


def tell(what: str, offsets: dict[int, int]) -> None:
    """Print one line, at once."""
    print(json.dumps({what: offsets}), flush=True)


if __name__ == "__main__":
    main()
