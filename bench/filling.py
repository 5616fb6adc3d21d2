# SPDX-License-Identifier: Apache-2.0
"""Many offsets in many groups: written, and later compared one by one.

There are a million of them by default, so requests and replies are not encoded and decoded one by one: the
first of each is a stencil, in which a group's name and offsets are replaced by those of the next group.
"""

import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from bench.cluster import Cluster, Unprepared
from bench.dialect import Topic, nobody
from bench.wire import BadReply, Call

OFFSET: Final = struct.Struct(">q")
MISSING: Final = -1  # what Kafka answers for a partition without an offset


@dataclass(frozen=True, slots=True)
class Filling:
    """`groups` groups with offsets for `partitions` partitions each, all offsets different."""

    groups: int = 10_000
    partitions: int = 100

    def names(self) -> list[str]:
        """The groups' names, all of one length."""
        return [f"bench-restart-{number:08d}" for number in range(self.groups)]

    def offsets(self, number: int) -> list[int]:
        """The offsets of a group's partitions, from partition 0 on."""
        # Far from 0, so that their bytes are found nowhere else in a frame.
        first = (number + 1) * 1_000_000_007
        return list(range(first, first + self.partitions))

    def by_partition(self, number: int) -> dict[int, int]:
        """The same by partition."""
        return dict(enumerate(self.offsets(number)))


class Stencil:
    """The bytes of a request or reply about one group's offsets, to be made into those of another group."""

    def __init__(self, image: bytes, group: str, offsets: Sequence[int]) -> None:
        """Raises ValueError when an offset does not occur in the image, or twice."""
        packed = [OFFSET.pack(offset) for offset in offsets]
        if any(image.count(one) != 1 for one in packed):
            raise ValueError("each offset must occur once")
        self._image = image
        self._group = group.encode()
        self._places = [image.index(one) for one in packed]

    def cut(self, group: str, offsets: Sequence[int]) -> bytes:
        """The image with another group's name, of the same length, and its offsets."""
        image = bytearray(self._image.replace(self._group, group.encode()))
        for place, offset in zip(self._places, offsets, strict=True):
            OFFSET.pack_into(image, place, offset)
        return bytes(image)


def fill(cluster: Cluster, topic: Topic, filling: Filling) -> None:
    """Commit every offset, one request a group. Raises Unprepared when one is refused."""
    numbers = {name: number for number, name in enumerate(filling.names())}
    partitions = list(range(filling.partitions))
    good = b""
    for address, groups in cluster.by_coordinator(list(numbers)).items():
        calls = _commits(cluster, topic, filling, [(group, numbers[group]) for group in groups])
        try:
            for reply in cluster.peer(address).pipeline(calls):
                if reply[4:] != good:
                    cluster.dialect.check_commit(topic, partitions, reply)
                    good = reply[4:]
        except (OSError, BadReply) as error:
            raise Unprepared(f"filling: {error}") from error


def _commits(
    cluster: Cluster, topic: Topic, filling: Filling, groups: Sequence[tuple[str, int]]
) -> Iterator[Call]:
    name, number = groups[0]
    call = cluster.dialect.commit(topic, nobody(name), filling.by_partition(number))
    stencil = Stencil(call.frame, name, filling.offsets(number))
    for name, number in groups:
        yield call._replace(frame=stencil.cut(name, filling.offsets(number)))


def compare(cluster: Cluster, topic: Topic, filling: Filling) -> Counter[str]:
    """Fetch every offset and count those that are missing or different, and the replies with errors.

    Raises Unprepared when the connection breaks.
    """
    errors: Counter[str] = Counter()
    comparison = _Comparison(cluster, topic, filling)
    numbers = {name: number for number, name in enumerate(filling.names())}
    for address, groups in cluster.by_coordinator(list(numbers)).items():
        calls = comparison.calls(groups)
        try:
            for group, reply in zip(groups, cluster.peer(address).pipeline(calls), strict=True):
                errors += comparison.differences(group, numbers[group], reply)
        except (OSError, BadReply) as error:
            raise Unprepared(f"comparing: {error}") from error
    return errors


class _Comparison:
    def __init__(self, cluster: Cluster, topic: Topic, filling: Filling) -> None:
        self._cluster = cluster
        self._topic = topic
        self._filling = filling
        self._good: Stencil | None = None  # a good reply from behind its correlation id on

    def calls(self, groups: Sequence[str]) -> Iterator[Call]:
        """An OffsetFetch for each group."""
        call = self._cluster.dialect.fetch(self._topic, groups[0], list(range(self._filling.partitions)))
        first = groups[0].encode()
        for group in groups:
            yield call._replace(frame=call.frame.replace(first, group.encode()))

    def differences(self, group: str, number: int, reply: bytes) -> Counter[str]:
        """What a reply has wrong; nothing for a good one."""
        offsets = self._filling.offsets(number)
        if self._good is not None and self._good.cut(group, offsets) == reply[4:]:
            return Counter()
        try:
            found = self._cluster.dialect.fetched(self._topic, group, reply)
        except BadReply as error:
            return Counter({str(error): self._filling.partitions})
        expected = self._filling.by_partition(number)
        if found == expected:
            self._good = Stencil(reply[4:], group, offsets)
            return Counter()
        missing = sum(found.get(partition, MISSING) == MISSING for partition in expected)
        wrong = sum(found.get(p, MISSING) not in {MISSING, offset} for p, offset in expected.items())
        return Counter({"offset missing": missing, "offset wrong": wrong})
