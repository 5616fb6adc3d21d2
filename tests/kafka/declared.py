# SPDX-License-Identifier: Apache-2.0
"""Topics of ours whose ends are known: those who make their records say it by what they commit."""

import uuid
from collections.abc import Mapping

from coordinator.catalogue.topic_configs import END_GROUP
from tests.support import raw


def declared_topic(bootstrap: str, ends: Mapping[int, int]) -> str:
    """Make a topic that ends at these offsets, by partition; returns its name."""
    topic = f"declared-{uuid.uuid4().hex[:8]}"
    raw.create_topic(bootstrap, topic, len(ends), configs={END_GROUP: "makers"})
    raw.commit_offsets(bootstrap, "makers", topic, ends)
    return topic
