# SPDX-License-Identifier: Apache-2.0
"""Changes of topics, as they are written to the disk and sent between nodes: what changed and nothing else."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from coordinator.catalogue.limits import count_config_bytes
from coordinator.catalogue.topic import Topic

PIECE_TOPICS_MAX: Final = 250
PIECE_BYTES_MAX: Final = 64 * 1024
"""The maximum size of a piece with several topics, so that handling it takes a millisecond or two."""
_TOPIC_OVERHEAD_BYTES: Final = 64


class StaleChange(Exception):
    """Changes do not fit the existing topics, because they were made for others."""


class PartitionsAdded(msgspec.Struct, frozen=True, array_like=True):
    """The number of partitions of a topic that has more than `before`."""

    id: bytes
    before: int
    partitions: int


class ConfigsChanged(msgspec.Struct, frozen=True, array_like=True):
    """The settings of a topic, and those that it had `before`."""

    id: bytes
    before: Mapping[str, str]
    configs: Mapping[str, str]


class Changes(msgspec.Struct, frozen=True, omit_defaults=True):
    """The changes from old topics to new ones. They apply in the order of the fields: deletions free names first."""

    deleted: Sequence[bytes] = ()
    grown: Sequence[PartitionsAdded] = ()
    configured: Sequence[ConfigsChanged] = ()
    created: Sequence[Topic] = ()

    def __bool__(self) -> bool:
        """Return whether anything changes."""
        return bool(self.deleted or self.grown or self.configured or self.created)

    def split_off_creations(self) -> tuple["Changes", "Changes"]:
        """Split into all changes but creations, then the creations, if topics are both deleted and created.

        Otherwise all changes are in the first part. Applied in turn, both parts have the same effect.
        """
        if not (self.deleted and self.created):
            return self, Changes()
        return msgspec.structs.replace(self, created=()), Changes(created=self.created)

    def split_into_pieces(self) -> Iterator["Changes"]:
        """Yield the changes in pieces of bounded size, which together have the same effect."""
        for start in range(0, len(self.deleted), PIECE_TOPICS_MAX):
            yield Changes(deleted=self.deleted[start : start + PIECE_TOPICS_MAX])
        for start in range(0, len(self.grown), PIECE_TOPICS_MAX):
            yield Changes(grown=self.grown[start : start + PIECE_TOPICS_MAX])
        for each in self.configured:
            yield Changes(configured=[each])
        for topics in topic_pieces(self.created):
            yield Changes(created=topics)


def topic_pieces(topics: Iterable[Topic]) -> Iterator[list[Topic]]:
    """Yield the topics in lists of bounded size."""
    piece: list[Topic] = []
    size = 0
    for topic in topics:
        topic_size = _TOPIC_OVERHEAD_BYTES + len(topic.name) + count_config_bytes(topic)
        if piece and (len(piece) == PIECE_TOPICS_MAX or size + topic_size > PIECE_BYTES_MAX):
            yield piece
            piece, size = [], 0
        piece.append(topic)
        size += topic_size
    if piece:
        yield piece
