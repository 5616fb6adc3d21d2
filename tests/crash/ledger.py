# SPDX-License-Identifier: Apache-2.0
"""What a server may still hold after a crash, given what it was sent and what it acknowledged."""

import threading
from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple


class Key(NamedTuple):
    """One committed offset."""

    group: str
    partition: int


class Register:
    """All states that were asked for one key, in order; None is no offset."""

    def __init__(self) -> None:
        """Begin without an offset."""
        self._states: list[int | None] = [None]
        self._certain = 0

    def ask(self, state: int | None) -> int:
        """Note that a state was asked for, and return its place in the order."""
        self._states.append(state)
        return len(self._states) - 1

    def certain(self, place: int) -> None:
        """Note that a client has seen the state at this place: from now on it may not be lost."""
        self._certain = max(self._certain, place)

    def place_of(self, state: int) -> int:
        """Return where in the order a state is that was read."""
        return self._states.index(state)

    def allowed(self) -> list[int | None]:
        """The states that a server may show after a crash: the last one that is certain, or any asked for after it."""
        return self._states[self._certain :]

    def begin_again_from(self, state: int | None) -> None:
        """Forget the past: after a restart this was read, so it is certain."""
        self._states, self._certain = [state], 0


class Ledger:
    """The registers of all keys; several connections write to it."""

    def __init__(self) -> None:
        """Begin without any offset."""
        self._registers: defaultdict[Key, Register] = defaultdict(Register)
        self._lock = threading.Lock()
        self.acknowledged = 0

    def ask(self, states: Mapping[Key, int | None]) -> dict[Key, int]:
        """Note one request, before it is sent."""
        with self._lock:
            return {key: self._registers[key].ask(state) for key, state in states.items()}

    def acknowledge(self, places: Mapping[Key, int]) -> None:
        """Note the good answer to one request."""
        with self._lock:
            self.acknowledged += 1
            for key, place in places.items():
                self._registers[key].certain(place)

    def saw(self, offsets: Mapping[Key, int]) -> None:
        """Note that somebody has read these offsets."""
        with self._lock:
            for key, offset in offsets.items():
                self._registers[key].certain(self._registers[key].place_of(offset))

    def settle(self, group: str, stored: Mapping[int, int]) -> list[str]:
        """Return what is wrong with a group's offsets after a restart; whatever they are, go on from them."""
        wrong = []
        for key, register in self._registers.items():
            if key.group == group:
                state = stored.get(key.partition)
                allowed = register.allowed()
                if state not in allowed:
                    wrong.append(
                        f"{key} is {state}, certain was {allowed[0]}, asked for after that {allowed[1:]}"
                    )
                register.begin_again_from(state)
        unknown = stored.keys() - {key.partition for key in self._registers if key.group == group}
        return wrong + [
            f"{group} has an offset in partition {each}, which nobody committed" for each in unknown
        ]
