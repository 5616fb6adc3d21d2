# SPDX-License-Identifier: Apache-2.0
"""Sets of topics, of which many groups have the same: each is kept once."""

from typing import Final

SHARED_TOPICS_MAX: Final = 1_000
_shared_topics: Final[dict[frozenset[str], frozenset[str]]] = {}


def shared(topics: frozenset[str]) -> frozenset[str]:
    """An equal set, the same one for all groups with these few subscriptions."""
    if len(topics) > 10:
        return topics
    if len(_shared_topics) >= SHARED_TOPICS_MAX:
        _shared_topics.clear()
    return _shared_topics.setdefault(topics, topics)
