# SPDX-License-Identifier: Apache-2.0
"""What a node keeps for its groups, counted as it changes: a million offsets need not be walked to know."""

from collections import Counter


class GroupTotals:
    """The books of one node, over all groups in its memory, those included that are still loading.

    Every group counts into it what it gains and loses (GroupMetadata), and takes its share out when it leaves memory.
    """

    __slots__ = (
        "group_id_bytes",
        "groups",
        "member_bytes",
        "members",
        "offset_metadata_bytes",
        "offsets",
        "pending_members",
        "refusals",
    )

    def __init__(self, refusals: Counter[str] | None = None) -> None:
        self.refusals = Counter() if refusals is None else refusals
        """How often each limit has refused something, by its setting."""
        self.groups = 0
        self.group_id_bytes = 0
        self.members = 0
        self.member_bytes = 0
        """Of metadata, assignments and ids, those that were given out included."""
        self.pending_members = 0
        self.offsets = 0
        self.offset_metadata_bytes = 0


def text_bytes(text: str) -> int:
    """How many bytes a text takes in memory at most: its characters have one byte, or up to four."""
    return len(text) if text.isascii() else 4 * len(text)
