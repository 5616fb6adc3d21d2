# SPDX-License-Identifier: Apache-2.0
"""The limits of connections, in all and for each address."""

from collections import Counter
from typing import Final

OURSELVES: Final = "gateway"
"""The client address that stands for a process of ours that connects for itself."""


class ConnectionQuotas:
    """Counts connections against `max.connections` and `max.connections.per.ip`."""

    def __init__(self, total_max: int, per_address_max: int) -> None:
        self._total_max = total_max
        self._per_address_max = per_address_max
        self._per_address: Counter[str] = Counter()
        self.total = 0

    def admit(self, address: str) -> bool:
        """Count a connection, or return False if a limit is reached; connections of our own processes always fit."""
        if address != OURSELVES and self._is_full(address):
            return False
        self.total += 1
        self._per_address[address] += 1
        return True

    def _is_full(self, address: str) -> bool:
        return self.total >= self._total_max or self._per_address[address] >= self._per_address_max

    def leave(self, address: str) -> None:
        """Count an admitted connection no longer, as it is gone."""
        self.total -= 1
        self._per_address[address] -= 1
        if not self._per_address[address]:
            del self._per_address[address]
