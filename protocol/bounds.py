# SPDX-License-Identifier: Apache-2.0
"""The bounds of requests by their API, checked before anything is stored or decoded.

Kafka has one bound for all, `socket.request.max.bytes` (100 MiB), and threads to spare. Here a request is read on the
event loop, where 100 MiB of a Heartbeat, or a list of millions of empty names, would delay all other clients.
The bounds are far above what clients send: 10,000 groups or topics by name, every partition of a large cluster.
"""

from typing import Final, NamedTuple

ITEMS_MAX: Final = 50_000
"""The most items in all arrays of one request: 20,000 partitions, each in a topic of its own, and some."""

MOVED_MAX: Final = 200_000
"""The most items of a request that only our own processes send: all offsets of a group that is moved."""

PROTOCOLS_MAX: Final = 1_000
"""The most items of a JoinGroup: members offer a few protocols, and every join counts the votes for all."""

LEAVING_MAX: Final = 10_000
"""The most items of a LeaveGroup, whose members leave all at once, so that the others know who is left."""

TAGS_MAX: Final = 8
"""The most tagged fields of one struct (KIP-482): no request that is served has more than three."""

REMEMBERED_NAME_MAX: Final = 256
"""The most characters of a client-chosen name that is cached: longer ones are served, but looked up each time."""

SMALL_FRAME_BYTES: Final = 64 * 1024
"""The length up to which a frame is accepted for any API."""


class FrameBound(NamedTuple):
    """The bound of a request of one API, without the length before its frame."""

    bytes_max: int
    grows: bool = False
    """True if its content is appended as one batch, so that a node with longer batches accepts longer requests."""

    def frame_limit_bytes(self, message_bytes_max: int) -> int:
        """Return the bound for a node whose batches may have `message_bytes_max` bytes.

        The content of one batch may be twice as long in its request, in which no text is compressed.
        """
        return max(self.bytes_max, 2 * message_bytes_max) if self.grows else self.bytes_max


STRINGS: Final = FrameBound(256 * 1024)
"""The bound of a few strings, each of at most 32 KiB."""

LISTS: Final = FrameBound(4 * 1024 * 1024)
"""The bound of lists of names and partitions."""

LISTS_AT_ONCE: Final = FrameBound(2 * 1024 * 1024)
"""The bound of lists of the hot APIs, which are decoded in one go."""

COMMITS: Final = FrameBound(2 * 1024 * 1024, grows=True)
"""The bound of offsets with their metadata: any size that fits into the log."""

MOVED: Final = FrameBound(64 * 1024 * 1024)
"""The bound of all offsets of a group, with their metadata."""

BLOBS: Final = FrameBound(8 * 1024 * 1024, grows=True)
"""The bound of members' metadata and assignments, and of records: any size that fits into the log."""
