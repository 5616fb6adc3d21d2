# SPDX-License-Identifier: Apache-2.0
"""Turns changes of the cluster's topics into changes of the catalogue, without I/O."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Final

from coordinator.catalogue.catalogue import Catalogue
from coordinator.catalogue.changes import Changes, PartitionsAdded
from coordinator.catalogue.names import OFFSETS_TOPIC, collision_key, invalid_reason
from coordinator.catalogue.topic import Topic
from coordinator.upstream.topic_diff import SeenTopic, TopicDiff

NO_ID: Final = bytes(16)


def compute_changes(known: Catalogue, change: TopicDiff) -> tuple[Changes, list[str]]:
    """Return the changes, and the topics that cannot be kept: their names are invalid or too like other names.

    Kafka lets no client create `a_b` if `a.b` exists, but old clusters may have both; the first one stays. Topics that
    no Kafka cluster has (a name with a slash, an id twice) would make a catalogue file that the next start refuses.
    `__consumer_offsets` is left out, because that topic is ours.
    """
    deleted = [known.get(name) for name in change.deleted if name != OFFSETS_TOPIC]
    grown = [(known.get(name), seen) for name, seen in change.grown.items() if name != OFFSETS_TOPIC]
    fitting = dict(_fitting(known, change.created, change.deleted))
    left_out = [name for name in change.created if name not in fitting and name != OFFSETS_TOPIC]
    changes = Changes(
        deleted=[topic.id for topic in deleted if topic is not None],
        grown=[
            PartitionsAdded(topic.id, topic.partitions, seen.partitions)
            for topic, seen in grown
            if topic is not None
        ],
        created=[Topic(name=name, id=s.topic_id, partitions=s.partitions) for name, s in fitting.items()],
    )
    return changes, left_out


def with_left_out_topics(left_out: Mapping[str, SeenTopic], change: TopicDiff) -> TopicDiff:
    """Return the change plus the topics that were left out before and still exist, because they may fit now."""
    waiting = {name: change.grown.get(name, topic) for name, topic in left_out.items()}
    there = {name: topic for name, topic in waiting.items() if name not in change.deleted}
    return replace(change, created={**there, **change.created})


def _fitting(
    known: Catalogue, created: Mapping[str, SeenTopic], deleted: Collection[str]
) -> Iterator[tuple[str, SeenTopic]]:
    taken: set[str | bytes] = {collision_key(OFFSETS_TOPIC), NO_ID}
    for name, topic in created.items():
        if topic.partitions < 1 or invalid_reason(name) is not None:
            continue
        there, key = known.find_same_or_colliding_name(name), collision_key(name)
        same = known.by_id(topic.topic_id)
        is_free = (there is None or there in deleted) and (same is None or same.name in deleted)
        if is_free and taken.isdisjoint((key, topic.topic_id)):
            taken.update((key, topic.topic_id))
            yield name, topic
