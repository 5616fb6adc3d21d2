# SPDX-License-Identifier: Apache-2.0
"""How many connections there may be, in all and from one address."""

from collections import Counter
from typing import Final

OURSELVES: Final = "gateway"
"""In place of the address of a client: a process of ours that asks for itself."""


class Admission:
    """Counts connections against `max.connections` and `max.connections.per.ip`."""

    def __init__(self, total_max: int, per_address_max: int) -> None:
        self._total_max = total_max
        self._per_address_max = per_address_max
        self._per_address: Counter[str] = Counter()
        self.total = 0

    def admit(self, address: str) -> bool:
        """Count one more connection, unless that would be too many; our own processes are never too many."""
        if address != OURSELVES and self._is_full(address):
            return False
        self.total += 1
        self._per_address[address] += 1
        return True

    def _is_full(self, address: str) -> bool:
        return self.total >= self._total_max or self._per_address[address] >= self._per_address_max

    def leave(self, address: str) -> None:
        """One connection that was admitted is gone."""
        self.total -= 1
        self._per_address[address] -= 1
        if not self._per_address[address]:
            del self._per_address[address]
