# SPDX-License-Identifier: Apache-2.0
"""What clients did and saw, and what must hold of it. Every rule has a name; a broken one raises `Broken`."""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from math import inf

from tests.simulation.settings import SIDE_TOPIC

NOTHING = -1
"""What a fetch answers where no offset is committed."""
UNDECIDED_S = 120.0
"""How long a deletion that was never answered may take place."""

Key = tuple[str, str, int]
"""group, topic, partition"""


class Broken(AssertionError):
    """An invariant does not hold."""

    def __init__(self, rule: str, facts: str) -> None:
        super().__init__(f"{rule}: {facts}")
        self.rule = rule


@dataclass(slots=True, eq=False)
class Write:
    """A commit, or, with NOTHING, a deletion. `done` is None while it is not known whether it took place."""

    value: int
    began: float
    done: float | None = None
    refused: bool = False
    siblings: Mapping[Key, "Write"] = field(default_factory=dict)
    """Everything that was committed by the same request."""


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
            if len(self.deletions) > 16:
                self.deletions = [each for each in self.deletions if not each.refused][-8:]
        else:
            self.writes[write.value] = write

    def took_place(self, write: Write, now: float) -> None:
        write.done = now
        self._seen(Sighting(write, write.began, now))

    def read(self, value: int, began: float, now: float) -> tuple[Write, float] | str:
        """Check a read; returns what it saw and until when at the latest that was there, or what is wrong."""
        if value == NOTHING:
            return self._read_nothing(began, now)
        write = self.writes.get(value)
        if write is None:
            return f"offset {value} was never committed"
        if write.refused:
            return f"the commit of offset {value} was refused, and is visible"
        until, by = self._replaced(write)
        if until < began:
            return f"offset {value} was read after {by} had replaced it"
        write.done = now if write.done is None else min(write.done, now)
        self._seen(Sighting(write, began, now))
        return write, until

    def _read_nothing(self, began: float, now: float) -> tuple[Write, float] | str:
        fits = []
        for each in self.deletions:
            until, _ = self._replaced(each)
            if not each.refused and until >= began:
                fits.append((each, until))
        if not fits:
            return f"nothing is committed, but {self._newest(began)} was acknowledged"
        if len(self.deletions) == 1:
            self._seen(Sighting(fits[0][0], began, now))
        # Which of them it saw is not known.
        return min(fits, key=lambda fit: fit[0].began)[0], max(until for _, until in fits)

    def _replaced(self, write: Write) -> tuple[float, int]:
        """By when at the latest something else was the newest for certain, and what."""
        until, by = inf, NOTHING
        done = write.done
        if done is not None:  # else it may still take place
            for other in self.sightings:
                if other.done < until and done < other.began and other.write is not write:
                    until, by = other.done, other.write.value
        return until, by

    def _seen(self, sighting: Sighting) -> None:
        """Remember the newest ones; what many have replaced will not come back unnoticed."""
        self.sightings.append(sighting)
        if len(self.sightings) > 48:
            self.sightings.sort(key=lambda each: each.began)
            del self.sightings[:24]

    def _newest(self, before: float) -> int:
        seen = [each for each in self.sightings if each.done < before and each.write.value != NOTHING]
        return max(seen, key=lambda each: each.began).write.value if seen else NOTHING


class History:
    """The registers of all groups, and the generations that their members saw."""

    def __init__(self, time: Callable[[], float], first_value: int = 0) -> None:
        self._time = time
        self._registers: dict[Key, Register] = defaultdict(Register)
        self._value = first_value
        self.generations: dict[str, Generations] = defaultdict(Generations)
        self.counts: dict[str, int] = defaultdict(int)
        self.topic_deleted_at = -UNDECIDED_S
        """When the topic that comes and goes was to be deleted."""

    # --- offsets ---

    def new_value(self) -> int:
        """An offset that was never committed before."""
        self._value += 1
        return self._value

    def begin(self, key: Key, value: int) -> Write:
        """A commit, or a deletion, is about to be sent."""
        write = Write(value, self._time())
        self._registers[key].begin(write)
        return write

    def begin_commit(self, keys: Collection[Key]) -> Mapping[Key, Write]:
        """One commit of several partitions is about to be sent."""
        writes = {key: self.begin(key, self.new_value()) for key in keys}
        if len(writes) > 1:
            for write in writes.values():
                write.siblings = writes
        return writes

    def begin_topic_deletion(self) -> Mapping[Key, Write]:
        """The topic that comes and goes is about to go, and all that is committed in it."""
        self.topic_deleted_at = self._time()
        return {key: self.begin(key, NOTHING) for key in self._registers if key[1] == SIDE_TOPIC}

    def acknowledged(self, key: Key, write: Write) -> None:
        self.counts["deletions" if write.value == NOTHING else "commits"] += 1
        self._registers[key].took_place(write, self._time())

    def topic_is_gone(self, writes: Mapping[Key, Write]) -> None:
        """A deletion of the topic that comes and goes was acknowledged."""
        self.counts["topic deletions"] += 1
        for key, write in writes.items():
            self.acknowledged(key, write)

    def refused(self, write: Write) -> None:
        """An error that says for certain that nothing was done."""
        write.refused = True

    def fetched(self, values: Mapping[Key, int], began: float) -> None:
        """Offsets of one group were read together."""
        now = self._time()
        self.counts["fetches"] += len(values)
        seen: dict[Key, Write] = {}
        from_s, until_s = began, now
        for key, value in values.items():
            found = self._registers[key].read(value, began, now)
            if isinstance(found, str):
                raise Broken("an acknowledged commit is never lost or moved back", f"{key}: {found}")
            seen[key], until = found
            from_s, until_s = max(from_s, found[0].began), min(until_s, until)
        if from_s > until_s:
            raise Broken(
                "OffsetFetch is linearizable per group",
                f"{values} were never there together from {began:.4f} to {now:.4f}",
            )
        for write in seen.values():
            self._check_whole(write, seen)
        for key, write in {id(write.siblings): (key, write) for key, write in seen.items()}.values():
            self._note_whole(key[1], write, now)

    def _note_whole(self, topic: str, write: Write, now: float) -> None:
        """A commit is taken whole: whoever has seen one of its offsets in a topic may count on the others there."""
        for key, sibling in write.siblings.items():
            if key[1] == topic and sibling.done is None and not sibling.refused:
                self._registers[key].took_place(sibling, now)

    def _check_whole(self, write: Write, seen: Mapping[Key, Write]) -> None:
        for key, there in seen.items():
            sibling = write.siblings.get(key)
            if sibling is None or there is sibling or sibling.refused or there.value == NOTHING:
                continue
            if there.done is not None and there.done < sibling.began:
                raise Broken("a commit is taken whole", f"{key} shows {there.value}, not {sibling.value}")

    # --- what the log says ---

    def is_being_deleted(self, key: Key) -> bool:
        """Whether a client may have asked for the tombstone that is written now."""
        now = self._time()
        deletions = self._registers[key].deletions
        if any(
            each.done is None and not each.refused and now - each.began < UNDECIDED_S for each in deletions
        ):
            return True
        # Offsets in a deleted topic go when their partition is served again, whenever that is.
        return key[1] == SIDE_TOPIC and now - self.topic_deleted_at < UNDECIDED_S

    def removed(self, key: Key) -> None:
        """The log has a tombstone for what was committed there."""
        self.counts["tombstones"] += 1
        write = self.begin(key, NOTHING)
        self._registers[key].took_place(write, write.began)

    def forgotten(self, group: str) -> None:
        """The log has a tombstone for the group itself."""
        self.counts["groups forgotten"] += 1
        self.generations[group].begin_anew(self._time())


@dataclass(slots=True)
class Generations:
    """The generations of one group."""

    newest: int = 0
    synced_at: float = -1.0
    since: float = -1.0
    """When the group began anew, having been removed."""
    proposals: dict[int, list[Mapping[str, bytes]]] = field(default_factory=lambda: defaultdict(list))
    received: dict[int, dict[str, bytes]] = field(default_factory=lambda: defaultdict(dict))
    owners: dict[int, dict[tuple[str, int], str]] = field(default_factory=lambda: defaultdict(dict))

    def begin_anew(self, now: float) -> None:
        """The group was removed; the next one of this name counts from 1 again."""
        self.newest, self.synced_at, self.since = 0, -1.0, now
        self.received.clear()
        self.owners.clear()

    def proposed(self, generation: int, assignments: Mapping[str, bytes]) -> None:
        """A leader sends its plan."""
        self.proposals[generation].append(assignments)

    def committed(self, generation: int, began: float) -> None:
        """A member's commit was taken, having been sent at `began`."""
        if generation < self.newest and self.synced_at < began:
            raise Broken("a commit of an old generation is refused", f"{generation} after {self.newest}")

    def assigned(
        self,
        generation: int,
        member: str,
        assignment: bytes,
        partitions: Collection[tuple[str, int]],
        began: float,
        now: float,
    ) -> None:
        """A member got its part, having asked at `began`."""
        if began < self.since:
            return  # in a group that is no more
        if generation < self.newest and self.synced_at < began:
            raise Broken("a generation never decreases", f"{member} synced {generation} after {self.newest}")
        known = self.received[generation]
        if known.setdefault(member, assignment) != assignment:
            raise Broken("a generation has one assignment", f"{member} got two in {generation}")
        plans = self.proposals[generation]
        if not any(all(plan.get(each, b"") == part for each, part in known.items()) for plan in plans):
            raise Broken(
                "all of a generation got one leader's assignment", f"generation {generation}: {sorted(known)}"
            )
        self._check_owners(generation, member, partitions)
        if generation > self.newest:
            self.newest, self.synced_at = generation, now
            self._forget_old(generation - 20)

    def _check_owners(self, generation: int, member: str, partitions: Collection[tuple[str, int]]) -> None:
        owners = self.owners[generation]
        for partition in partitions:
            owner = owners.setdefault(partition, member)
            if owner != member:
                raise Broken(
                    "no partition has two owners in one generation",
                    f"{partition} belongs to {owner} and {member} in {generation}",
                )

    def _forget_old(self, before: int) -> None:
        for old in [each for each in self.proposals if each < before]:
            del self.proposals[old]
            self.received.pop(old, None)
            self.owners.pop(old, None)
