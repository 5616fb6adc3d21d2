# SPDX-License-Identifier: Apache-2.0
"""How large a request may be, by its api: looked at before anything is kept or decoded.

Kafka has one bound for all, `socket.request.max.bytes` (100 MiB), and threads to spare. Here a request is read on the
event loop, where 100 MiB of a Heartbeat, or a list of millions of empty names, would keep everybody else waiting.
The bounds are far above what clients send: 10,000 groups or topics by name, every partition of a large cluster.
"""

from typing import Final, NamedTuple

ITEMS_MAX: Final = 50_000
"""Items of all arrays of one request together: 20,000 partitions, each in a topic of its own, and some."""

MOVED_MAX: Final = 200_000
"""Items of what only our own processes ask: all offsets of a group that is moved."""

PROTOCOLS_MAX: Final = 1_000
"""Items of a JoinGroup: a member offers a handful of protocols, and every join counts the votes for all of them."""

LEAVING_MAX: Final = 10_000
"""Items of a LeaveGroup: members leave all at once, or none of those who stay would know who is left."""

TAGS_MAX: Final = 8
"""Tagged fields of one struct (KIP-482): no request that is served has more than three."""

REMEMBERED_NAME_MAX: Final = 256
"""Characters of a name that a client chooses: a longer one is served, and looked up again each time."""

SMALL_FRAME_BYTES: Final = 64 * 1024
"""Below, a frame is good for any api."""


class FrameBound(NamedTuple):
    """How long a request of one api may be, without the length before its frame."""

    bytes_max: int
    grows: bool = False
    """Whether what it brings goes into one batch, so that a node that takes longer batches takes longer requests."""

    def of(self, message_bytes_max: int) -> int:
        """The bound of a node whose batches may have `message_bytes_max` bytes.

        What goes into one batch may be twice as long in its request, in which no text is compressed.
        """
        return max(self.bytes_max, 2 * message_bytes_max) if self.grows else self.bytes_max


STRINGS: Final = FrameBound(256 * 1024)
"""A few strings, each of at most 32 KiB."""

LISTS: Final = FrameBound(4 * 1024 * 1024)
"""Lists of names and partitions."""

LISTS_AT_ONCE: Final = FrameBound(2 * 1024 * 1024)
"""Lists of the hot apis, which are decoded in one go."""

COMMITS: Final = FrameBound(2 * 1024 * 1024, grows=True)
"""Offsets with their metadata: of any size that fits into the log."""

MOVED: Final = FrameBound(64 * 1024 * 1024)
"""All offsets of a group, with their metadata."""

BLOBS: Final = FrameBound(8 * 1024 * 1024, grows=True)
"""What members send each other, and records: of any size that fits into the log."""
