# SPDX-License-Identifier: Apache-2.0
"""The sets of topics that groups subscribe to; groups with equal sets share one."""

from typing import Final

SHARED_TOPICS_MAX: Final = 1_000
_shared_topics: Final[dict[frozenset[str], frozenset[str]]] = {}


def intern_topics(topics: frozenset[str]) -> frozenset[str]:
    """Return an equal set, shared by the groups with these topics; a set of more than 10 is returned as it is."""
    if len(topics) > 10:
        return topics
    if len(_shared_topics) >= SHARED_TOPICS_MAX:
        _shared_topics.clear()
    return _shared_topics.setdefault(topics, topics)
