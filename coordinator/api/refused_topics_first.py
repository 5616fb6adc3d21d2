# SPDX-License-Identifier: Apache-2.0
"""The order of topics in responses that are merged from two parts, which is Kafka's order.

KafkaApis first refuses the topics and partitions that do not exist; the coordinator's results for the others follow
(OffsetCommitResponse.Builder, OffsetDeleteResponse.Builder). Clients see that order.
"""

from collections.abc import Hashable
from typing import Any, TypeVar

K = TypeVar("K", bound=Hashable)


def merge_refused_before_answered(refused: dict[K, Any], answered: list[tuple[K, Any]]) -> list[Any]:
    """Return the topics of a response, each with its `partitions`: the refused ones first.

    If anything was refused, a topic that is in both parts, or twice in one, is returned once.
    """
    if not refused:
        return [topic for _, topic in answered]
    for key, topic in answered:
        known = refused.get(key)
        if known is None:
            refused[key] = topic
        else:
            known.partitions.extend(topic.partitions)
    return list(refused.values())
