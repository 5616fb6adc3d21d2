# SPDX-License-Identifier: Apache-2.0
"""The order of topics in answers that are put together of two parts, as Kafka puts them together.

KafkaApis refuses what does not exist before the coordinator is asked for the rest, whose answers follow
(OffsetCommitResponse.Builder, OffsetDeleteResponse.Builder). Clients see that order.
"""

from collections.abc import Hashable
from typing import Any, TypeVar

K = TypeVar("K", bound=Hashable)


def merge_topics(refused: dict[K, Any], answered: list[tuple[K, Any]]) -> list[Any]:
    """The topics of a response, each with its `partitions`: the refused ones first.

    A topic that is on both sides, or came twice where something was refused, is answered once.
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
