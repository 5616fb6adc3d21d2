# SPDX-License-Identifier: Apache-2.0
"""A map of the newest offset of each key, within a bound of memory."""

from typing import Final

from protocol.newtypes import Offset

_ENTRY_BYTES: Final = 33 + 32 + 104
"""The bytes of an entry without the key's own: its object, the offset's, and their place in a dict just grown."""


class OffsetMap:
    """Maps each key to its newest offset. Holds whole keys, where Kafka's SkimpyOffsetMap holds only hashes."""

    __slots__ = ("_left", "_offsets", "latest_offset")

    def __init__(self, bytes_max: int) -> None:
        self.latest_offset = Offset(-1)
        """The offset up to which the keys of all records are in the map."""
        self._offsets: dict[bytes, Offset] = {}
        self._left = bytes_max

    def __len__(self) -> int:
        return len(self._offsets)

    def put(self, key: bytes, offset: Offset) -> bool:
        """Set a key's newest offset, in the order of the log; return False, and change nothing, if there is no room."""
        if key not in self._offsets:
            size = len(key) + _ENTRY_BYTES
            if size > self._left:
                return False
            self._left -= size
        self._offsets[key] = offset
        return True

    def is_newest(self, key: bytes, offset: Offset) -> bool:
        """Return whether no later record of this key is known."""
        return offset >= self._offsets.get(key, -1)
