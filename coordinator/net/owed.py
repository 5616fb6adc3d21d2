# SPDX-License-Identifier: Apache-2.0
"""What one connection owes its peer, in bytes."""

from coordinator.net.budget import Unsent


class Owed:
    """Counts the answers that the peer has not taken, and counts them into the budget of all connections.

    An answer is owed from when it is made until it is given to a transport that has room. What a full transport keeps
    is counted on; it says how much that is only when it is asked (`settle`).
    """

    __slots__ = ("_unsent", "answers_bytes", "buffered_bytes", "is_full")

    def __init__(self, unsent: Unsent) -> None:
        self._unsent = unsent
        self.answers_bytes = 0
        """Of answers that were not given to the transport yet."""
        self.buffered_bytes = 0
        """Of those that it keeps, since it is full."""
        self.is_full = False

    def add(self, count: int) -> None:
        """Answers of so many bytes more are owed."""
        self.answers_bytes += count
        self._unsent.add(count)

    def replaced(self, count: int) -> None:
        """Answers of so many bytes will not be sent: others take their place."""
        self.answers_bytes -= count
        self._unsent.remove(count)

    def written(self, count: int) -> None:
        """So many bytes were given to the transport."""
        self.answers_bytes -= count
        if self.is_full:
            self.buffered_bytes += count
        else:
            self._unsent.remove(count)

    def settle(self, kept_bytes: int) -> bool:
        """The full transport keeps so many bytes; returns whether that is less than was known."""
        known_bytes, self.buffered_bytes = self.buffered_bytes, kept_bytes
        if kept_bytes < known_bytes:
            self._unsent.remove(known_bytes - kept_bytes)
            return True
        self._unsent.add(kept_bytes - known_bytes)
        return False

    def emptied(self) -> None:
        """The transport has room again, or is gone."""
        self.is_full = False
        kept_bytes, self.buffered_bytes = self.buffered_bytes, 0
        self._unsent.remove(kept_bytes)

    def drop_answers(self) -> None:
        """The answers that the transport has not got will never be given to it."""
        count, self.answers_bytes = self.answers_bytes, 0
        self._unsent.remove(count)
