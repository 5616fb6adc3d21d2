# SPDX-License-Identifier: Apache-2.0
"""The rules by which topics are created, grown and deleted (Kafka's ReplicationControlManager); pure."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping
from typing import Final

import msgspec

from coordinator.catalogue.changes import Changes, ConfigsChanged, PartitionsAdded, StaleChange
from coordinator.catalogue.limits import (
    LimitRefusal,
    TopicLimits,
    Totals,
    find_added_partitions_refusal,
    find_new_topic_refusal,
    find_settings_refusal,
    find_width_refusal,
)
from coordinator.catalogue.names import CLUSTER_METADATA_TOPIC, collision_key, invalid_reason
from coordinator.catalogue.steps import COUNTED_PER_STEP, Steps, iterate_in_steps, run_all_steps
from coordinator.catalogue.topic import Refusal, Topic
from protocol.errors import ErrorCode

NO_CONFIGS: Final[Mapping[str, str]] = {}
UNDONE_PER_STEP: Final = 20


class MutableTopics(ABC):
    """Topics that can be looked up and changed; the cost of a change does not depend on the number of topics.

    `__consumer_offsets` is always one of them, as in a Kafka cluster that has had a group; the settings define that
    topic, and it cannot be created, changed or deleted.
    """

    __slots__ = ("limits", "offsets_topic", "refusals", "totals")

    def __init__(self, offsets_topic: Topic, limits: TopicLimits) -> None:
        self.offsets_topic = offsets_topic
        self.limits = limits
        self.totals = Totals()
        self.refusals: Counter[str] = Counter()
        """How often each limit has refused something, by its setting."""

    @abstractmethod
    def get(self, name: str) -> Topic | None:
        """Return the topic of this name, None if there is none."""

    @abstractmethod
    def by_id(self, topic_id: bytes) -> Topic | None:
        """Return the topic whose uuid has these 16 bytes, None if there is none."""

    @abstractmethod
    def find_same_or_colliding_name(self, name: str) -> str | None:
        """Return the name of the topic that has this name or a name that collides with it, else None."""

    @abstractmethod
    def _replace(self, before: Topic | None, after: Topic | None) -> None:
        """Replace `before` by `after`, where None is no topic, and update `totals`."""

    def __contains__(self, name: str) -> bool:
        return self.get(name) is not None

    def find_creation_refusal(self, name: str) -> Refusal | None:
        """Return a refusal if no topic of this name can be created now, else None."""
        if name == CLUSTER_METADATA_TOPIC:
            return Refusal(ErrorCode.INVALID_REQUEST, f"Creation of internal topic {name} is prohibited.")
        if name in self:
            return Refusal(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
        if reason := invalid_reason(name):
            return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)
        if other := self.find_same_or_colliding_name(name):
            return Refusal(
                ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {other}"
            )
        return None

    def add_topic(
        self, name: str, partitions: int, *, topic_id: bytes, configs: Mapping[str, str] = NO_CONFIGS
    ) -> Topic | Refusal:
        """Add a topic. `topic_id` must be a new one, and `configs` must have been checked (`topic_configs.py`)."""
        if refusal := self.find_creation_refusal(name):
            return refusal
        if partitions < 1:
            return Refusal(
                ErrorCode.INVALID_PARTITIONS, "Number of partitions was set to a non-positive value."
            )
        topic = Topic(name=name, id=topic_id, partitions=partitions, configs=dict(configs))
        if limited := find_new_topic_refusal(topic, self.totals, self.limits):
            return self._counted(limited)
        if refusal := find_width_refusal(partitions, self.limits):
            return refusal
        assert self.by_id(topic_id) is None, f"the id {topic_id.hex()} is taken"
        self._replace(None, topic)
        return topic

    def create_partitions(self, name: str, count: int) -> Topic | Refusal:
        """Increase the partitions of a topic to `count` in all, which must be more than it has."""
        topic = self.get(name)
        if topic is None:
            return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if topic is self.offsets_topic:
            return Refusal(
                ErrorCode.INVALID_REQUEST,
                f"The partitions of {name} place every group, so they cannot change. "
                "(offsets.topic.num.partitions)",
            )
        if count == topic.partitions:
            return Refusal(ErrorCode.INVALID_PARTITIONS, f"Topic already has {count} partition(s).")
        if count < topic.partitions:
            return Refusal(
                ErrorCode.INVALID_PARTITIONS,
                f"The topic {name} currently has {topic.partitions} partition(s); "
                f"{count} would not be an increase.",
            )
        if limited := find_added_partitions_refusal(count - topic.partitions, self.totals, self.limits):
            return self._counted(limited)
        if refusal := find_width_refusal(count, self.limits):
            return refusal
        grown = msgspec.structs.replace(topic, partitions=count)
        self._replace(topic, grown)
        return grown

    def replace_configs(self, name: str, configs: Mapping[str, str]) -> Topic | Refusal:
        """Replace all settings of a topic by these, which must have been checked (`topic_configs.py`)."""
        topic = self.get(name)
        if topic is None:
            return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
        if topic is self.offsets_topic:
            return Refusal(ErrorCode.INVALID_REQUEST, f"The settings of {name} are those of the node.")
        configured = msgspec.structs.replace(topic, configs=dict(configs))
        if limited := find_settings_refusal(topic, configured, self.totals, self.limits):
            return self._counted(limited)
        self._replace(topic, configured)
        return configured

    def remove_topic(self, name: str) -> Topic | Refusal:
        """Remove a topic and return it."""
        topic = self.get(name)
        if topic is None:
            return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if topic is self.offsets_topic:
            return Refusal(ErrorCode.INVALID_REQUEST, f"Deletion of internal topic {name} is prohibited.")
        self._replace(topic, None)
        return topic

    def _counted(self, limited: LimitRefusal) -> Refusal:
        self.refusals[limited.limit] += 1
        return limited.refusal

    def apply_and_list_deleted(self, changes: Changes) -> list[str]:
        """Apply changes that were decided elsewhere, whatever the limits; return the names of deleted topics.

        Raises StaleChange, with a part of the changes applied, if they were made for other topics.
        """
        gone = []
        for topic_id in changes.deleted:
            topic = self._changeable(topic_id)
            self._replace(topic, None)
            gone.append(topic.name)
        for grown in changes.grown:
            topic = self._changeable(grown.id)
            if not topic.partitions == grown.before < grown.partitions:
                raise StaleChange(
                    f"topic '{topic.name}' has {topic.partitions} partitions, and not {grown.before}"
                )
            self._replace(topic, msgspec.structs.replace(topic, partitions=grown.partitions))
        for configured in changes.configured:
            topic = self._changeable(configured.id)
            if topic.configs != configured.before:
                raise StaleChange(f"topic '{topic.name}' has other settings than those that were changed")
            self._replace(topic, msgspec.structs.replace(topic, configs=configured.configs))
        for topic in changes.created:
            if other := self.find_same_or_colliding_name(topic.name):
                raise StaleChange(f"topics '{other}' and '{topic.name}' cannot exist side by side")
            if there := self.by_id(topic.id):
                raise StaleChange(f"topics '{there.name}' and '{topic.name}' have the same id")
            self._replace(None, topic)
        return gone

    def _changeable(self, topic_id: bytes) -> Topic:
        topic = self.by_id(topic_id)
        if topic is None or topic is self.offsets_topic:
            raise StaleChange(f"there is no topic with the id {topic_id.hex()} to be changed")
        return topic


class Draft(MutableTopics):
    """Topics with changes that are not visible yet, on top of the unchanged topics below.

    The topics below must not change while the draft is in use.
    """

    __slots__ = ("_below", "_by_id", "_by_key", "_by_name", "_steps")

    def __init__(self, below: MutableTopics) -> None:
        super().__init__(below.offsets_topic, below.limits)
        self.totals = msgspec.structs.replace(below.totals)
        self.refusals = below.refusals
        self._below = below
        self._by_name: dict[str, Topic | None] = {}
        self._by_id: dict[bytes, Topic | None] = {}
        self._by_key: dict[str, str | None] = {}
        self._steps: list[tuple[Topic | None, Topic | None]] = []

    def get(self, name: str) -> Topic | None:
        """Return the topic of this name, None if there is none."""
        return self._by_name[name] if name in self._by_name else self._below.get(name)

    def by_id(self, topic_id: bytes) -> Topic | None:
        """Return the topic whose uuid has these 16 bytes, None if there is none."""
        return self._by_id[topic_id] if topic_id in self._by_id else self._below.by_id(topic_id)

    def find_same_or_colliding_name(self, name: str) -> str | None:
        """Return the name of the topic that has this name or a name that collides with it, else None."""
        key = collision_key(name)
        return self._by_key[key] if key in self._by_key else self._below.find_same_or_colliding_name(name)

    def get_savepoint(self) -> int:
        """Return a mark that `undo_in_steps` can go back to."""
        return len(self._steps)

    def undo_in_steps(self, mark: int) -> Steps[None]:
        """Undo the changes since `mark` was taken; nothing else may change before the last step."""
        for step in iterate_in_steps(range(len(self._steps) - mark), UNDONE_PER_STEP):
            if step is None:
                yield
                continue
            before, after = self._steps.pop()
            self._set(after, before)

    def changes(self) -> Changes:
        """Return the changes that turn the topics below into these topics."""
        return run_all_steps(self.collect_changes_in_steps())

    def collect_changes_in_steps(self) -> Steps[Changes]:
        """Return the same as `changes`, in steps; nothing may change before the last step."""
        deleted: list[bytes] = []
        grown: list[PartitionsAdded] = []
        configured: list[ConfigsChanged] = []
        created: list[Topic] = []
        for topic_id in iterate_in_steps(self._by_id, COUNTED_PER_STEP):
            if topic_id is None:
                yield
                continue
            now, before = self._by_id[topic_id], self._below.by_id(topic_id)
            if before is None and now is not None:
                created.append(now)
            elif before is not None and now is None:
                deleted.append(topic_id)
            elif before is not None and now is not None:
                if before.partitions != now.partitions:
                    grown.append(PartitionsAdded(topic_id, before.partitions, now.partitions))
                if before.configs != now.configs:
                    configured.append(ConfigsChanged(topic_id, before.configs, now.configs))
        return Changes(deleted, grown, configured, created)

    def _replace(self, before: Topic | None, after: Topic | None) -> None:
        self._steps.append((before, after))
        self._set(before, after)

    def _set(self, before: Topic | None, after: Topic | None) -> None:
        if before is not None:
            self.totals.add(before, -1)
            self._by_name[before.name] = None
            self._by_id[before.id] = None
            self._by_key[collision_key(before.name)] = None
        if after is not None:
            self.totals.add(after)
            self._by_name[after.name] = after
            self._by_id[after.id] = after
            self._by_key[collision_key(after.name)] = after.name
