# SPDX-License-Identifier: Apache-2.0
"""Changes of topics on their way from a worker to the one catalogue.

A worker decides on a copy of what it knows, and asks for the difference. It is made only if the topics in it are
still as the worker saw them; else the worker decides again, on what is new.
"""

from collections.abc import Sequence

from coordinator.catalogue.catalogue import Catalogue
from coordinator.catalogue.topic import Refusal, Topic
from coordinator.cluster.messages import TopicState

Change = tuple[TopicState | None, TopicState | None]


def difference(before: Catalogue, after: Catalogue) -> list[Change]:
    """What makes `after` of `before`: deletions first, so that a name is free again."""
    gone: list[Change] = [(_state(topic), None) for topic in before.missing_from(after)]
    new: list[Change] = [(None, _state(topic)) for topic in after.missing_from(before)]
    grown: list[Change] = []
    for topic in after:
        old = before.by_id(topic.id)
        if old is not None and old != topic:
            grown.append((_state(old), _state(topic)))
    return [*gone, *grown, *new]


def apply_changes(changes: Sequence[Change], catalogue: Catalogue) -> bool:
    """Make all changes, or, where one does not fit any more, none; whether they were made."""
    draft = catalogue.copy()
    if not all(_apply(before, after, draft) for before, after in changes):
        return False
    catalogue.adopt(draft)
    return True


def _apply(before: TopicState | None, after: TopicState | None, catalogue: Catalogue) -> bool:
    if before is not None:
        topic = catalogue.by_id(before.id)
        if topic is None or _state(topic) != before:
            return False
        if after is None:
            return not isinstance(catalogue.delete(before.name), Refusal)
        return not isinstance(catalogue.create_partitions(before.name, after.partitions), Refusal)
    if after is None or catalogue.by_id(after.id) is not None:
        return False
    created = catalogue.create(after.name, after.partitions, topic_id=after.id, configs=after.configs)
    return not isinstance(created, Refusal)


def _state(topic: Topic) -> TopicState:
    return TopicState(topic.name, topic.id, topic.partitions, dict(topic.configs))
