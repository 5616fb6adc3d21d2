# SPDX-License-Identifier: Apache-2.0
"""ListOffsets that asks for the end of all partitions of a wide topic."""

from bench.attack.frames import Size, request
from protocol.apis import ApiKey
from protocol.kafka_python_messages import ListOffsetsRequest


def frames(size: Size) -> list[bytes]:
    """One request."""
    kind = ListOffsetsRequest.ListOffsetsTopic
    rows = [
        kind.ListOffsetsPartition(version=5, partition_index=index, current_leader_epoch=-1, timestamp=-1)
        for index in range(10_000)
    ]
    topics = [kind(version=5, name="wide", partitions=rows)]
    return [request(ApiKey.LIST_OFFSETS, 5, ListOffsetsRequest(version=5, replica_id=-1, topics=topics))]
