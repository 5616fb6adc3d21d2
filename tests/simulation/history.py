# SPDX-License-Identifier: Apache-2.0
"""What clients did and saw, and what must hold of it. Every rule has a name; a broken one raises `Broken`."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

NOTHING = -1
"""What a fetch answers where no offset is committed."""

Key = tuple[str, str, int]
"""group, topic, partition"""


class Broken(AssertionError):
    """An invariant does not hold."""

    def __init__(self, rule: str, facts: str) -> None:
        super().__init__(f"{rule}: {facts}")
        self.rule = rule


@dataclass(slots=True)
class Write:
    """A commit, or, with NOTHING, a deletion. `done` is None while nobody knows whether it took place."""

    value: int
    began: float
    done: float | None = None
    refused: bool = False


@dataclass(slots=True)
class Sighting:
    """At some moment from `began` to `done` this write was the newest."""

    write: Write
    began: float
    done: float


@dataclass(slots=True)
class Register:
    """One committed offset. All values that are written are different, so a read says which write it saw."""

    writes: dict[int, Write] = field(default_factory=dict)
    deletions: list[Write] = field(default_factory=lambda: [Write(NOTHING, -1.0, -1.0)])
    sightings: list[Sighting] = field(default_factory=list)

    def begin(self, write: Write) -> None:
        if write.value == NOTHING:
            self.deletions.append(write)
        else:
            self.writes[write.value] = write

    def took_place(self, write: Write, now: float) -> None:
        write.done = now
        self._seen(Sighting(write, write.began, now))

    def read(self, value: int, began: float, now: float) -> str | None:
        """Check a read; returns what is wrong with it."""
        if value == NOTHING:
            fits = [each for each in self.deletions if not each.refused and not self._replaced(each, began)]
            if not fits:
                return f"nothing is committed, but {self._newest(began)} was acknowledged"
            if len(self.deletions) == 1:
                self._seen(Sighting(fits[0], began, now))
            return None
        write = self.writes.get(value)
        if write is None:
            return f"offset {value} was never committed"
        if write.refused:
            return f"the commit of offset {value} was refused, and is visible"
        by = self._replaced(write, began)
        if by is not None:
            return f"offset {value} was read after {by.write.value} had replaced it"
        write.done = now if write.done is None else min(write.done, now)
        self._seen(Sighting(write, began, now))
        return None

    def _replaced(self, write: Write, before: float) -> Sighting | None:
        """What was the newest for certain after `write`, and before `before`."""
        if write.done is None:
            return None  # it may still take place
        for other in self.sightings:
            if other.write is not write and write.done < other.began and other.done < before:
                return other
        return None

    def _seen(self, sighting: Sighting) -> None:
        """Remember the newest ones; what many have replaced will not come back unnoticed."""
        self.sightings.append(sighting)
        if len(self.sightings) > 64:
            self.sightings.sort(key=lambda each: each.began)
            del self.sightings[:32]

    def _newest(self, before: float) -> int:
        seen = [each for each in self.sightings if each.done < before and each.write.value != NOTHING]
        return max(seen, key=lambda each: each.began).write.value if seen else NOTHING


class History:
    """The registers of all groups, and the generations that their members saw."""

    def __init__(self, time: Callable[[], float]) -> None:
        self._time = time
        self._registers: dict[Key, Register] = defaultdict(Register)
        self._values = 0
        self.generations: dict[str, Generations] = defaultdict(Generations)
        self.counts: dict[str, int] = defaultdict(int)

    # --- offsets ---

    def new_value(self) -> int:
        """An offset that was never committed before."""
        self._values += 1
        return self._values

    def begin(self, key: Key, value: int) -> Write:
        """A commit, or a deletion, is about to be sent."""
        write = Write(value, self._time())
        self._registers[key].begin(write)
        return write

    def acknowledged(self, key: Key, write: Write) -> None:
        self.counts["commits"] += 1
        self._registers[key].took_place(write, self._time())

    def refused(self, write: Write) -> None:
        """An error that says for certain that nothing was done."""
        write.refused = True

    def fetched(self, key: Key, value: int, began: float) -> None:
        """An offset was read."""
        self.counts["fetches"] += 1
        wrong = self._registers[key].read(value, began, self._time())
        if wrong is not None:
            raise Broken("OffsetFetch is linearizable, and no acknowledged commit is lost", f"{key}: {wrong}")


@dataclass(slots=True)
class Generations:
    """The generations of one group."""

    newest: int = 0
    synced_at: float = -1.0
    proposals: dict[int, list[Mapping[str, bytes]]] = field(default_factory=lambda: defaultdict(list))
    received: dict[int, dict[str, bytes]] = field(default_factory=lambda: defaultdict(dict))

    def proposed(self, generation: int, assignments: Mapping[str, bytes]) -> None:
        """A leader sends its plan."""
        self.proposals[generation].append(assignments)

    def committed(self, generation: int, began: float) -> None:
        """A member's commit was taken, having been sent at `began`."""
        if generation < self.newest and self.synced_at < began:
            raise Broken("a commit of an old generation is refused", f"{generation} after {self.newest}")

    def assigned(self, generation: int, member_id: str, assignment: bytes, began: float, now: float) -> None:
        """A member got its part, having asked at `began`."""
        if generation < self.newest and self.synced_at < began:
            raise Broken(
                "a generation never decreases", f"{member_id} synced {generation} after {self.newest}"
            )
        known = self.received[generation]
        if known.setdefault(member_id, assignment) != assignment:
            raise Broken("a generation has one assignment", f"{member_id} got two in {generation}")
        plans = self.proposals[generation]
        if not any(all(plan.get(member, b"") == part for member, part in known.items()) for plan in plans):
            raise Broken(
                "all of a generation got one leader's assignment", f"generation {generation}: {sorted(known)}"
            )
        if generation > self.newest:
            self.newest, self.synced_at = generation, now
            for old in [each for each in self.proposals if each < generation - 20]:
                del self.proposals[old]
                self.received.pop(old, None)
