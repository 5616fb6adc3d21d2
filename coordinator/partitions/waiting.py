# SPDX-License-Identifier: Apache-2.0
"""What a reply has to wait for.

Only four places know more of this than its name: the log's side that gives it, the shard and its manager that note
it on groups, the door (`door.py`), which notes it on requests, and the connection, which holds a reply until it is
durable.
"""

from typing import Final, TypeAlias

Flush: TypeAlias = int
"""When something appended is durable: once the flush of this number is. Later ones are larger."""

NO_FLUSH: Final[Flush] = 0
"""Of what is durable already, or was never written."""


class Waiting:
    """Something that must not be said before all that it depends on is durable."""

    __slots__ = ("flush",)

    def __init__(self) -> None:
        self.flush: Flush = NO_FLUSH
        """The newest flush that this depends on."""

    def wait_for(self, flush: Flush) -> None:
        """Wait for this, too."""
        self.flush = max(self.flush, flush)
