# SPDX-License-Identifier: Apache-2.0
"""The offsets of partitions at their start, end or a time: ListOffsets, sent to each partition's leader."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from coordinator.cli.cluster.client import Client
from coordinator.cluster_requests.model import TopicPartition
from coordinator.cluster_requests.retrying import RetryLater
from coordinator.cluster_requests.topics import list_offsets
from coordinator.config.values import Address
from protocol.errors import ErrorCode, error_name

NOWHERE: Final = -1
"""The offset of a time after which there is no record."""

Found = int | str
"""An offset, or the name of the error in its place."""

_NOT_LED_YET: Final = {ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.LEADER_NOT_AVAILABLE}


def fetch_offsets_at(
    client: Client, places: Iterable[TopicPartition], timestamp: int
) -> dict[TopicPartition, Found]:
    """Return the offset of each partition at START, at END or at a time in ms, or the name of the error.

    The offset is -1 if there is no record after the time. Requests are repeated after errors that soon pass.
    """
    wanted = list(dict.fromkeys(places))
    if not wanted:
        return {}

    def attempt() -> dict[TopicPartition, Found]:
        found: dict[TopicPartition, Found] = dict.fromkeys(wanted, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.name)
        for address, led in _by_leader(client, wanted).items():
            found |= _ask(client, address, led, timestamp)
        return found

    return client.call_with_retries(attempt)


def select_known_offsets(found: Mapping[TopicPartition, Found]) -> dict[TopicPartition, int]:
    """Return the entries that are offsets, neither errors nor negative."""
    return {place: offset for place, offset in found.items() if isinstance(offset, int) and offset >= 0}


def _by_leader(client: Client, places: Sequence[TopicPartition]) -> dict[Address, list[TopicPartition]]:
    """Return the partitions that exist, by the address of their leaders."""
    from protocol.kafka_python_messages import topics_by_name

    metadata = client.fetch_metadata(sorted({place.topic for place in places}))
    addresses = client.addresses_by_node_id(metadata)
    wanted, led = set(places), dict[Address, list[TopicPartition]]()
    for name, topic in topics_by_name(metadata).items():
        for partition in topic.partitions:
            place = TopicPartition(name, partition.partition_index)
            if place not in wanted:
                continue
            if partition.leader_id not in addresses:
                raise RetryLater(f"looking for the leader of {place}", ErrorCode.LEADER_NOT_AVAILABLE)
            led.setdefault(addresses[partition.leader_id], []).append(place)
    return led


def _ask(
    client: Client, address: Address, places: Sequence[TopicPartition], timestamp: int
) -> dict[TopicPartition, Found]:
    found: dict[TopicPartition, Found] = {}
    for place, answer in client.connect(address).ask(list_offsets(places, timestamp)).items():
        if answer.error_code in _NOT_LED_YET:
            raise RetryLater(f"asking for the offsets of {place}", answer.error_code)
        is_found = answer.error_code == ErrorCode.NONE
        found[place] = answer.offset if is_found else error_name(answer.error_code)
    return found
