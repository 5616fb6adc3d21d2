# SPDX-License-Identifier: Apache-2.0
"""The totals of a node's groups, counted at each change so that a million offsets need not be iterated over."""

from collections import Counter


class GroupTotals:
    """The totals of one node over all groups in its memory, including those that are still loading.

    Every group adds what it gains or loses (GroupMetadata), and subtracts its share when it leaves memory.
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
        """The number of refusals by each limit, by its setting."""
        self.groups = 0
        self.group_id_bytes = 0
        self.members = 0
        self.member_bytes = 0
        """The bytes of the members' metadata, assignments and names, and of ids that were given out."""
        self.pending_members = 0
        self.offsets = 0
        self.offset_metadata_bytes = 0


def text_bytes(text: str) -> int:
    """Return the most bytes that a text takes in memory: one for each character, or four if it is not ASCII."""
    return len(text) if text.isascii() else 4 * len(text)
