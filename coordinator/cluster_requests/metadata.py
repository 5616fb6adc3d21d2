# SPDX-License-Identifier: Apache-2.0
"""The request for the brokers and topics of a cluster: Metadata v10-v12."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from coordinator.cluster_requests.request import ClusterRequest, make_plain_request
from protocol.apis import ApiKey

if TYPE_CHECKING:
    from protocol.kafka_python_messages import MetadataResponse


def metadata(topics: Iterable[str] | None) -> "ClusterRequest[MetadataResponse]":
    """Ask any broker for all brokers and for these topics, or all topics for None; creates no topic."""
    from protocol.kafka_python_messages import MetadataRequest

    kind = MetadataRequest.MetadataRequestTopic
    named = None if topics is None else [kind(name=topic) for topic in topics]
    return make_plain_request(ApiKey.METADATA, MetadataRequest(topics=named, allow_auto_topic_creation=False))
