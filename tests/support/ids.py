# SPDX-License-Identifier: Apache-2.0
"""Ids for tests: random ones, the same in every run."""

import random
import uuid

from coordinator.catalogue.ids import random_topic_id

_RANDOM = random.Random(0)


def new_uuid() -> uuid.UUID:
    """Another one each time, version 4."""
    return uuid.UUID(bytes=_RANDOM.randbytes(16), version=4)


def new_topic_id() -> bytes:
    """Another one each time, as a node makes them."""
    return random_topic_id(new_uuid)
