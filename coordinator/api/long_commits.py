# SPDX-License-Identifier: Apache-2.0
"""OffsetCommit of many offsets, cut up into parts that are decided and stored one after the other.

Others go on between the parts. Each is stored as a commit of its own would be at its moment: what was stored before
the group rebalances, or its partition is lost, stays and is acknowledged, and the rest gets the error that a commit
gets then. What is checked of the whole, before anything is stored, is that it fits into one batch of the log.
"""

from collections.abc import Generator, Iterator, Sequence
from typing import Any, Final
from uuid import UUID

from coordinator.config import Settings
from coordinator.partitions.append_errors import append_error, commit_error
from protocol.errors import ErrorCode
from protocol.hot.offset_commit import OffsetCommitRequestTopic, OffsetCommitResponseTopic
from protocol.messages import OffsetCommitResponse
from storage.errors import RecordTooLarge
from storage.format.batch import BatchBuilder
from storage.format.records import OffsetCommits

ITEMS_PER_PART: Final = 100
"""Topics and partitions that are decided or stored together: some 500 microseconds."""
ANSWERED_AT_ONCE: Final = 5_000
"""Answers of more topics and partitions are encoded in slices, too."""

TOPIC_IDS_FROM: Final = 10

Taken = list[tuple[str | bytes, OffsetCommitResponseTopic]]
"""What is committed, by the name or id that the request gives it, in the order of the request."""
Refused = dict[str | bytes, OffsetCommitResponseTopic]
"""What does not exist, by the name or id that the request gives it."""
Part = list[tuple[int, OffsetCommitRequestTopic]]
"""Topics, or some partitions of one, with the place of each in the request."""


def parts(topics: Sequence[OffsetCommitRequestTopic]) -> Iterator[Part]:
    """The topics of a request in parts of at most ITEMS_PER_PART items; a long one is cut up."""
    part: Part = []
    room = ITEMS_PER_PART
    for number, topic in enumerate(topics):
        for some in _pieces(topic):
            if room < 1 + len(some.partitions):
                if part:
                    yield part
                part, room = [], ITEMS_PER_PART
            part.append((number, some))
            room -= 1 + len(some.partitions)
    if part:
        yield part


def _pieces(topic: OffsetCommitRequestTopic) -> Iterator[OffsetCommitRequestTopic]:
    """The topic, or several that have so many of its partitions each that a part has room for them."""
    step = ITEMS_PER_PART - 1
    if len(topic.partitions) <= step:
        yield topic
        return
    for start in range(0, len(topic.partitions), step):
        yield OffsetCommitRequestTopic(topic.name, topic.topic_id, topic.partitions[start : start + step])


class Answers:
    """Puts the answers of the parts together, in the order of the request."""

    def __init__(self) -> None:
        self.taken: Taken = []
        self.refused: Refused = {}
        self.items = 0
        """Topics and partitions."""
        self._place = -1  # in the request, of the last one taken

    def add(self, places: Sequence[int], taken: Taken, refused: Refused) -> None:
        """Add a part's answers: what it has taken, each from a place in the request, and what does not exist."""
        for place, (key, topic) in zip(places, taken, strict=True):
            self._items_of(topic)
            if place == self._place:
                self.taken[-1][1].partitions.extend(topic.partitions)
            else:
                self.taken.append((key, topic))
            self._place = place
        for key, topic in refused.items():
            self._items_of(topic)
            known = self.refused.setdefault(key, topic)
            if known is not topic:
                known.partitions.extend(topic.partitions)

    def _items_of(self, topic: OffsetCommitResponseTopic) -> None:
        self.items += 1 + len(topic.partitions)


def fit_together(
    settings: Settings, parts: Sequence[list[OffsetCommits]]
) -> Generator[None, None, ErrorCode]:
    """Whether all of it would fit into one batch, as one commit must; the error of a commit that does not."""
    batch = BatchBuilder(settings.message_max_bytes, settings.offsets_value_version)
    try:
        for commits in parts:
            batch.append_offsets(commits)
            if batch.batches > 1:
                return commit_error(ErrorCode.MESSAGE_TOO_LARGE)
            yield
    except RecordTooLarge as error:
        return commit_error(append_error(error))
    return ErrorCode.NONE


def response_in_slices(version: int, topics: list[OffsetCommitResponseTopic]) -> Any:
    """A response for `in_slices`, which takes the topics of the hot codec as they are, but for their ids."""
    kind: Any = OffsetCommitResponse
    answered = topics if version < TOPIC_IDS_FROM else _by_id(kind.OffsetCommitResponseTopic, version, topics)
    return kind(version=version, topics=iter(answered))


def _by_id(kind: Any, version: int, topics: list[OffsetCommitResponseTopic]) -> Iterator[Any]:
    for topic in topics:
        yield kind(version=version, topic_id=UUID(bytes=topic.topic_id), partitions=topic.partitions)
