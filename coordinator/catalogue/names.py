# SPDX-License-Identifier: Apache-2.0
"""The rules for the names of topics (Kafka's org.apache.kafka.common.internals.Topic)."""

import re
from typing import Final

NAME_LENGTH_MAX: Final = 249  # leaves room for "-<partition>" in a directory name of 255
OFFSETS_TOPIC: Final = "__consumer_offsets"
CLUSTER_METADATA_TOPIC: Final = "__cluster_metadata"
INTERNAL_TOPICS: Final = frozenset({OFFSETS_TOPIC, "__transaction_state", "__share_group_state"})

_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]+")


def invalid_reason(name: str) -> str | None:
    """Return what is wrong with a topic's name, None if it is valid."""
    if not name:
        return "Topic name is invalid: the empty string is not allowed"
    if name in (".", ".."):
        return f"Topic name is invalid: '{name}' is not allowed"
    if len(name) > NAME_LENGTH_MAX:
        return (
            f"Topic name is invalid: '{name}' has {len(name)} characters, "
            f"the max allowed length is {NAME_LENGTH_MAX}"
        )
    if not _LEGAL.fullmatch(name):
        return (
            f"Topic name is invalid: '{name}' contains one or more characters other than "
            "ASCII alphanumerics, '.', '_' and '-'"
        )
    return None


def collision_key(name: str) -> str:
    """Return a key that is equal for names that may not coexist: in metrics, '.' and '_' become the same."""
    return name.replace(".", "_")
