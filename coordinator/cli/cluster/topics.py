# SPDX-License-Identifier: Apache-2.0
"""What a cluster is asked about its topics, and to change about them."""

from coordinator.cli.cluster.client import Client
from protocol.errors import ErrorCode


def partition_counts(client: Client) -> dict[str, int]:
    """How many partitions each topic of the cluster has."""
    return {
        topic.name: len(topic.partitions)
        for topic in client.metadata(None).topics
        if topic.error_code in (ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE)
    }
