# SPDX-License-Identifier: Apache-2.0
"""The difference between the known topics of the cluster and those seen now. Pure: no I/O, no clock.

Offsets of a deleted topic are dropped, so a topic counts as deleted only beyond doubt. A broker that is cut off still
responds from an old view, and a user without rights sees nothing: so a topic that is missing from a list is asked for
by name, in two looks, and of two brokers if there are two. A topic under another id was deleted and created again, or
one of the two ids is from an old view: it is asked for in the same way. An id that was replaced once is never accepted
again, since only an old view can still have it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

CONFIRMATIONS: Final = 2
"""The number of looks, and of brokers, that must deny a topic before it counts as deleted."""
GONE_IDS_MAX: Final = 10_000


@dataclass(frozen=True, slots=True)
class SeenTopic:
    """A topic as a broker reports it: its id (16 bytes) and its number of partitions."""

    topic_id: bytes
    partitions: int


class UnreportedTopicStatus(Enum):
    """The result for a topic, asked for by name, that a broker does not report."""

    ABSENT = "there is no such topic"
    UNSURE = "no right to know, or an error that passes"


ABSENT: Final = UnreportedTopicStatus.ABSENT
UNSURE: Final = UnreportedTopicStatus.UNSURE
Verdict = SeenTopic | UnreportedTopicStatus


@dataclass(frozen=True, slots=True)
class TopicSnapshot:
    """All topics in one response, by name."""

    topics: Mapping[str, SeenTopic]


@dataclass(frozen=True, slots=True)
class TopicDiff:
    """The changes to make, topics by name. A topic that was created again is in `deleted` and in `created`."""

    created: Mapping[str, SeenTopic] = field(default_factory=dict)
    grown: Mapping[str, SeenTopic] = field(default_factory=dict)
    deleted: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.created or self.grown or self.deleted)


@dataclass(frozen=True, slots=True)
class UnconfirmedChanges:
    """The memory for the next comparison: the brokers that denied a topic, and ids that were replaced or deleted."""

    denied: Mapping[str, tuple[int | None, ...]] = field(default_factory=dict)
    """The brokers that denied each topic in consecutive looks; None stands for one without a known id."""
    gone: tuple[bytes, ...] = ()
    """Ids of topics that are known to be gone, the newest last."""


def list_topics_to_confirm(known: Mapping[str, SeenTopic], look: TopicSnapshot) -> list[str]:
    """Return the topics to ask for by name, in order: known ones that were not seen, or only under another id."""
    return sorted(name for name, topic in known.items() if not _is_same(topic, look.topics.get(name)))


def diff_topics(
    known: Mapping[str, SeenTopic],
    look: TopicSnapshot,
    answers: Mapping[str, Verdict],
    doubts: UnconfirmedChanges,
    *,
    answered_by: int | None = None,
    brokers: int = 1,
) -> tuple[TopicDiff, UnconfirmedChanges]:
    """Compare the known topics with a look and the answers about `list_topics_to_confirm`; return changes and doubts.

    `answered_by` is the broker that gave the answers, and `brokers` the cluster's number of them: with more than one,
    two different brokers must deny a topic. Topics without an answer stay unchanged.
    """
    gone = set(doubts.gone)
    seen = dict(look.topics) | {name: v for name, v in answers.items() if isinstance(v, SeenTopic)}
    seen = {name: topic for name, topic in seen.items() if topic.topic_id not in gone}
    created = {name: topic for name, topic in seen.items() if name not in known}
    grown = {
        name: topic
        for name, topic in seen.items()
        if _is_same(topic, known.get(name)) and topic.partitions > known[name].partitions
    }
    denied = _denied(known, seen, answers, doubts, answered_by)
    enough = min(CONFIRMATIONS, max(1, brokers))
    absent = [n for n, by in denied.items() if len(by) >= CONFIRMATIONS and len(set(by)) >= enough]
    deleted = tuple(sorted(absent))
    recreated = {name: seen[name] for name in deleted if name in seen}
    ids = dict.fromkeys([*doubts.gone, *(known[name].topic_id for name in deleted)])
    left = {name: by for name, by in denied.items() if name not in absent}
    return TopicDiff({**created, **recreated}, grown, deleted), UnconfirmedChanges(
        left, tuple(ids)[-GONE_IDS_MAX:]
    )


def compute_topics_after_diff(known: Mapping[str, SeenTopic], change: TopicDiff) -> dict[str, SeenTopic]:
    """Return the known topics after a change."""
    left = {name: topic for name, topic in known.items() if name not in change.deleted}
    return left | dict(change.grown) | dict(change.created)


def _is_same(topic: SeenTopic, other: SeenTopic | None) -> bool:
    return other is not None and other.topic_id == topic.topic_id


def _denied(
    known: Mapping[str, SeenTopic],
    seen: Mapping[str, SeenTopic],
    answers: Mapping[str, Verdict],
    doubts: UnconfirmedChanges,
    answered_by: int | None,
) -> dict[str, tuple[int | None, ...]]:
    """Return the brokers that denied each topic so far; any other answer clears them, no answer keeps them."""
    denied: dict[str, tuple[int | None, ...]] = {}
    for name, topic in known.items():
        if _is_same(topic, seen.get(name)):
            continue
        before = doubts.denied.get(name, ())
        answer = answers.get(name)
        if answer is ABSENT or (isinstance(answer, SeenTopic) and answer.topic_id not in doubts.gone):
            denied[name] = (*before, answered_by)[-8:]
        elif answer is None and before:
            denied[name] = before
    return denied
