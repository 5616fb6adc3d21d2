# SPDX-License-Identifier: Apache-2.0
"""All topics of a node; pure, so that a change can be tried on a copy and taken over once it is on disk."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from coordinator.catalogue.names import CLUSTER_METADATA_TOPIC, collision_key, why_invalid
from coordinator.catalogue.topic import Refusal, Topic
from protocol.errors import ErrorCode

# Kafka's controller makes no more partitions in one go (QuorumController.MAX_RECORDS_PER_USER_OP), so that
# one request cannot hold everybody else up. Answers to Metadata grow with the partitions: we need it, too.
PARTITIONS_PER_CHANGE_MAX: Final = 10_000

NO_CONFIGS: Final[Mapping[str, str]] = {}


class Catalogue:
    """Topics by name and by id, iterated in the order of their names.

    It always holds `__consumer_offsets`, as a Kafka does once a group has been there; that topic is as
    the settings have it and nobody can create, change or delete it.
    """

    __slots__ = ("_by_collision_key", "_by_id", "_by_name", "_sorted", "offsets_topic")

    def __init__(self, offsets_topic: Topic, topics: Iterable[Topic] = ()) -> None:
        self.offsets_topic = offsets_topic
        self._by_name: dict[str, Topic] = {}
        self._by_id: dict[bytes, Topic] = {}
        self._by_collision_key: dict[str, str] = {}
        self._sorted: list[Topic] | None = None
        for topic in (offsets_topic, *topics):
            self._put(topic)

    def __len__(self) -> int:
        return len(self._by_name)

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def __iter__(self) -> Iterator[Topic]:
        if self._sorted is None:
            self._sorted = [self._by_name[name] for name in sorted(self._by_name)]
        return iter(self._sorted)

    def get(self, name: str) -> Topic | None:
        """The topic of this name."""
        return self._by_name.get(name)

    def by_id(self, topic_id: bytes) -> Topic | None:
        """The topic whose uuid has these 16 bytes."""
        return self._by_id.get(topic_id)

    def refuse_new(self, name: str) -> Refusal | None:
        """Why no topic of this name can be created now; None when one can."""
        if name == CLUSTER_METADATA_TOPIC:
            return Refusal(ErrorCode.INVALID_REQUEST, f"Creation of internal topic {name} is prohibited.")
        if name in self._by_name:
            return Refusal(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
        if reason := why_invalid(name):
            return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)
        if other := self._by_collision_key.get(collision_key(name)):
            return Refusal(
                ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {other}"
            )
        return None

    def create(
        self, name: str, partitions: int, *, topic_id: bytes, configs: Mapping[str, str] = NO_CONFIGS
    ) -> Topic | Refusal:
        """Add a topic. `topic_id` must be a new one, and `configs` must have been checked (`configs.py`)."""
        if refusal := self.refuse_new(name):
            return refusal
        if partitions < 1:
            return Refusal(
                ErrorCode.INVALID_PARTITIONS, "Number of partitions was set to a non-positive value."
            )
        if partitions > PARTITIONS_PER_CHANGE_MAX:
            return _too_many(partitions)
        topic = Topic(name=name, id=topic_id, partitions=partitions, configs=dict(configs))
        self._put(topic)
        return topic

    def create_partitions(self, name: str, count: int) -> Topic | Refusal:
        """Let a topic have `count` partitions in all, which must be more than it has."""
        topic = self._by_name.get(name)
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
        if count - topic.partitions > PARTITIONS_PER_CHANGE_MAX:
            return _too_many(count - topic.partitions)
        grown = msgspec.structs.replace(topic, partitions=count)
        self._put_in_place_of(topic, grown)
        return grown

    def delete(self, name: str) -> Topic | Refusal:
        """Remove a topic and return it."""
        topic = self._by_name.get(name)
        if topic is None:
            return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if topic is self.offsets_topic:
            return Refusal(ErrorCode.INVALID_REQUEST, f"Deletion of internal topic {name} is prohibited.")
        del self._by_name[name]
        del self._by_id[topic.id]
        del self._by_collision_key[collision_key(name)]
        self._sorted = None
        return topic

    def copy(self) -> "Catalogue":
        """An independent catalogue of the same topics."""
        twin = Catalogue.__new__(Catalogue)
        twin.adopt(self)
        return twin

    def adopt(self, other: "Catalogue") -> None:
        """Hold what `other` holds; the two stay independent."""
        self.offsets_topic = other.offsets_topic
        self._by_name = dict(other._by_name)
        self._by_id = dict(other._by_id)
        self._by_collision_key = dict(other._by_collision_key)
        self._sorted = other._sorted

    def missing_from(self, other: "Catalogue") -> list[Topic]:
        """The topics that are here and not in `other`, in name order; ids tell, not names."""
        gone = [topic for topic_id, topic in self._by_id.items() if topic_id not in other._by_id]
        return sorted(gone, key=lambda topic: topic.name)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Catalogue)
            and self.offsets_topic == other.offsets_topic
            and self._by_name == other._by_name
        )

    __hash__ = None  # type: ignore[assignment]  # it changes

    def _put(self, topic: Topic) -> None:
        key = collision_key(topic.name)
        assert topic.id not in self._by_id, f"the id {topic.id.hex()} is taken"
        assert key not in self._by_collision_key, f"{topic.name} collides with {self._by_collision_key[key]}"
        self._by_name[topic.name] = topic
        self._by_id[topic.id] = topic
        self._by_collision_key[key] = topic.name
        self._sorted = None

    def _put_in_place_of(self, old: Topic, new: Topic) -> None:
        assert (old.name, old.id) == (new.name, new.id), f"{new} is not the topic {old}"
        self._by_name[new.name] = new
        self._by_id[new.id] = new
        self._sorted = None


def _too_many(partitions: int) -> Refusal:
    return Refusal(
        ErrorCode.POLICY_VIOLATION,
        f"{partitions} partitions are too many for one request, which may make {PARTITIONS_PER_CHANGE_MAX}.",
    )
