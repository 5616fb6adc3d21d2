# SPDX-License-Identifier: Apache-2.0
"""The offsets of partitions at their start, end or a time: ListOffsets v4-v7, sent to each partition's leader."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from coordinator.cli.cluster.client import Client, ServerNotReady
from coordinator.cli.cluster.connection import SupportedVersionRange
from coordinator.cli.cluster.model import PartitionRef
from coordinator.config.values import Address
from coordinator.upstream.errors import error_name
from protocol.apis import ApiKey
from protocol.errors import ErrorCode

START: Final = -2
END: Final = -1
NOWHERE: Final = -1
"""The offset of a time after which there is no record."""

Found = int | str
"""An offset, or the name of the error in its place."""

_NOT_LED_YET: Final = {ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.LEADER_NOT_AVAILABLE}


def fetch_offsets_at(
    client: Client, places: Iterable[PartitionRef], timestamp: int
) -> dict[PartitionRef, Found]:
    """Return the offset of each partition at START, at END or at a time in ms, or the name of the error.

    The offset is -1 if there is no record after the time. Requests are repeated after errors that soon pass.
    """
    wanted = list(dict.fromkeys(places))
    if not wanted:
        return {}

    def attempt() -> dict[PartitionRef, Found]:
        found: dict[PartitionRef, Found] = dict.fromkeys(wanted, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.name)
        for address, led in _by_leader(client, wanted).items():
            found |= _ask(client, address, led, timestamp)
        return found

    return client.call_with_retries(attempt)


def select_known_offsets(found: Mapping[PartitionRef, Found]) -> dict[PartitionRef, int]:
    """Return the entries that are offsets, neither errors nor negative."""
    return {place: offset for place, offset in found.items() if isinstance(offset, int) and offset >= 0}


def _by_leader(client: Client, places: Sequence[PartitionRef]) -> dict[Address, list[PartitionRef]]:
    """Return the partitions that exist, by the address of their leaders."""
    from protocol.kafka_python_messages import topics_by_name

    metadata = client.fetch_metadata(sorted({place.topic for place in places}))
    addresses = client.addresses_by_node_id(metadata)
    wanted, led = set(places), dict[Address, list[PartitionRef]]()
    for name, topic in topics_by_name(metadata).items():
        for partition in topic.partitions:
            place = PartitionRef(name, partition.partition_index)
            if place not in wanted:
                continue
            if partition.leader_id not in addresses:
                raise ServerNotReady(f"looking for the leader of {place}", ErrorCode.LEADER_NOT_AVAILABLE)
            led.setdefault(addresses[partition.leader_id], []).append(place)
    return led


def _ask(
    client: Client, address: Address, places: Sequence[PartitionRef], timestamp: int
) -> dict[PartitionRef, Found]:
    from protocol.kafka_python_messages import ListOffsetsRequest

    kind = ListOffsetsRequest.ListOffsetsTopic
    topics: dict[str, ListOffsetsRequest.ListOffsetsTopic] = {}
    for place in places:
        topic = topics.setdefault(place.topic, kind(name=place.topic, partitions=[]))
        partition = kind.ListOffsetsPartition(
            partition_index=place.partition, current_leader_epoch=-1, timestamp=timestamp
        )
        topic.partitions.append(partition)
    request = ListOffsetsRequest(replica_id=-1, isolation_level=0, topics=list(topics.values()))
    response = client.connect(address).ask(ApiKey.LIST_OFFSETS, SupportedVersionRange(4, 7), request)
    found: dict[PartitionRef, Found] = {}
    for topic in response.topics:
        for answer in topic.partitions:
            place = PartitionRef(topic.name, answer.partition_index)
            if answer.error_code in _NOT_LED_YET:
                raise ServerNotReady(f"asking for the offsets of {place}", answer.error_code)
            is_found = answer.error_code == ErrorCode.NONE
            found[place] = answer.offset if is_found else error_name(answer.error_code)
    return found
