# SPDX-License-Identifier: Apache-2.0
"""What the coordinator says about the group when another client, a Kafka admin client, asks."""

import time
from collections.abc import Callable
from typing import Final, NamedTuple, TypeVar

from confluent_kafka import ConsumerGroupState, ConsumerGroupTopicPartitions, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

T = TypeVar("T")

WAIT_S: Final = 30.0
ANSWER_TIMEOUT_S: Final = 1.0
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
        # the service is killed while this client is connected: what librdkafka logs about that is no news here
        self._settings: dict[str, str | int | float | bool] = {
            "bootstrap.servers": bootstrap,
            "log_level": 0,
            "reconnect.backoff.max.ms": 200,
        }
        self._admin = AdminClient(self._settings)

    def create_topic(self, partitions: int) -> None:
        """Create the topic. Raises Broken."""
        created = self._admin.create_topics([NewTopic(self._topic, partitions, 1)])
        self._answered(
            f"topic {self._topic} to be created", lambda: created[self._topic].result(ANSWER_TIMEOUT_S)
        )

    def view(self) -> View:
        """Describe the group. Raises Broken."""

        def ask() -> View:
            found = self._admin.describe_consumer_groups([self._group])[self._group].result(ANSWER_TIMEOUT_S)
            return View(
                found.state == ConsumerGroupState.STABLE,
                {at.partition: m.client_id for m in found.members for at in m.assignment.topic_partitions},
            )

        return self._answered(f"group {self._group} to be described", ask)

    def committed(self) -> dict[int, int]:
        """Fetch all committed offsets by partition. Raises Broken."""

        def ask() -> dict[int, int]:
            everything = ConsumerGroupTopicPartitions(self._group)
            answer = self._admin.list_consumer_group_offsets([everything])[self._group]
            found = answer.result(ANSWER_TIMEOUT_S).topic_partitions
            return {each.partition: each.offset for each in found if each.offset >= 0}

        return self._answered(f"the offsets of {self._group}", ask)

    def _answered(self, what: str, ask: Callable[[], T]) -> T:
        """Ask until there is an answer and no error: a service that has just started may still be loading."""
        deadline = time.monotonic() + WAIT_S
        while True:
            try:
                return ask()
            except (KafkaException, TimeoutError) as refused:
                if time.monotonic() >= deadline:
                    raise Broken(f"waited {WAIT_S:g} s for {what}: {refused!r}") from refused
                if isinstance(refused, TimeoutError):
                    # It may still wait for what a dying service owed; another client does not.
                    self._admin = AdminClient(self._settings)
            time.sleep(LOOK_EVERY_S)


def wait_for(what: str, condition: Callable[[], bool]) -> None:
    """Look until the condition holds. Raises Broken when it does not for long."""
    deadline = time.monotonic() + WAIT_S
    while not condition():
        if time.monotonic() >= deadline:
            raise Broken(f"waited {WAIT_S:g} s for {what}")
        time.sleep(LOOK_EVERY_S)
