# SPDX-License-Identifier: Apache-2.0
"""The newest offset of each key, in no more memory than allowed."""

from typing import Final

from protocol.names import Offset

_ENTRY_BYTES: Final = 33 + 32 + 104
"""Beside the key's own bytes: its object, the offset's, and their place in a dict that has just grown."""


class OffsetMap:
    """Keys as they are, and not hashes of them as in Kafka's SkimpyOffsetMap: no two are ever taken for one."""

    __slots__ = ("_left", "_offsets", "latest_offset")

    def __init__(self, bytes_max: int) -> None:
        self.latest_offset = Offset(-1)
        """Of all records up to this one the keys are in the map."""
        self._offsets: dict[bytes, Offset] = {}
        self._left = bytes_max

    def __len__(self) -> int:
        return len(self._offsets)

    def put(self, key: bytes, offset: Offset) -> bool:
        """Note a record that follows all noted before; False, and nothing is noted, when there is no room."""
        if key not in self._offsets:
            size = len(key) + _ENTRY_BYTES
            if size > self._left:
                return False
            self._left -= size
        self._offsets[key] = offset
        return True

    def is_newest(self, key: bytes, offset: Offset) -> bool:
        """Whether no later record of this key is known."""
        return offset >= self._offsets.get(key, -1)
