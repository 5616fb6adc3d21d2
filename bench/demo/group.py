# SPDX-License-Identifier: Apache-2.0
"""What the coordinator says about the group when another client, a Kafka admin client, asks."""

import time
from collections.abc import Callable
from typing import Final, NamedTuple, TypeVar

from confluent_kafka import ConsumerGroupState, ConsumerGroupTopicPartitions, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

T = TypeVar("T")

WAIT_S: Final = 30.0
LOOK_EVERY_S: Final = 0.02


class Broken(Exception):
    """The story did not go as it must; the message says where."""


class View(NamedTuple):
    """The group, as the coordinator describes it."""

    stable: bool
    owners: dict[int, str]  # partition -> client id


class Group:
    """Asks about one group on one topic."""

    def __init__(self, bootstrap: str, group: str, topic: str) -> None:
        self._group = group
        self._topic = topic
        self._admin = AdminClient(
            {
                "bootstrap.servers": bootstrap,
                # The service is killed while this client is connected: what librdkafka logs about that is no news.
                "log_level": 0,
                "reconnect.backoff.max.ms": 200,
                # By default librdkafka 2.11 and later forgets the broker when its last connection is lost, and starts
                # over from bootstrap.servers (KIP-1102). Its cache of coordinators still names the forgotten one, so
                # that a request to the coordinator may wait for it for ever (confluentinc/librdkafka issue 5511).
                "metadata.recovery.strategy": "none",
            }
        )

    def create_topic(self, partitions: int) -> None:
        """Create the topic. Raises Broken."""
        created = self._admin.create_topics([NewTopic(self._topic, partitions, 1)])
        answered(f"topic {self._topic} to be created", lambda: created[self._topic].result(WAIT_S))

    def view(self) -> View:
        """Describe the group. Raises Broken."""

        def ask() -> View:
            found = self._admin.describe_consumer_groups([self._group])[self._group].result(WAIT_S)
            return View(
                found.state == ConsumerGroupState.STABLE,
                {at.partition: m.client_id for m in found.members for at in m.assignment.topic_partitions},
            )

        return answered(f"group {self._group} to be described", ask)

    def committed(self) -> dict[int, int]:
        """Fetch all committed offsets by partition. Raises Broken."""

        def ask() -> dict[int, int]:
            everything = ConsumerGroupTopicPartitions(self._group)
            answer = self._admin.list_consumer_group_offsets([everything])[self._group]
            found = answer.result(WAIT_S).topic_partitions
            return {each.partition: each.offset for each in found if each.offset >= 0}

        return answered(f"the offsets of {self._group}", ask)


def answered(what: str, ask: Callable[[], T]) -> T:
    """Ask until there is an answer and no error: a service that has just started may still be loading."""
    deadline = time.monotonic() + WAIT_S
    while True:
        try:
            return ask()
        except TimeoutError as silence:
            raise Broken(f"no answer in {WAIT_S:g} s for {what}") from silence
        except KafkaException as refused:
            if time.monotonic() >= deadline:
                raise Broken(f"waited {WAIT_S:g} s for {what}: {refused}") from refused
        time.sleep(LOOK_EVERY_S)


def wait_for(what: str, condition: Callable[[], bool]) -> None:
    """Look until the condition holds. Raises Broken when it does not for long."""
    deadline = time.monotonic() + WAIT_S
    while not condition():
        if time.monotonic() >= deadline:
            raise Broken(f"waited {WAIT_S:g} s for {what}")
        time.sleep(LOOK_EVERY_S)
