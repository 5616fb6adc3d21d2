# SPDX-License-Identifier: Apache-2.0
"""All topics of a node as they are on disk; pure."""

from collections.abc import Collection, Iterable, Iterator

from coordinator.catalogue.limits import DEFAULT_LIMITS, TopicLimits, Totals
from coordinator.catalogue.names import collision_key
from coordinator.catalogue.sorted_names import OrderedNames
from coordinator.catalogue.steps import COUNTED_PER_STEP, Steps, iterate_in_steps
from coordinator.catalogue.topic import Topic
from coordinator.catalogue.topics import Draft, MutableTopics


class Catalogue(MutableTopics):
    """Topics by name and by id, iterated in the order of their names."""

    __slots__ = ("_by_key", "_names", "topics_by_id", "topics_by_name")

    def __init__(
        self, offsets_topic: Topic, topics: Iterable[Topic] = (), limits: TopicLimits = DEFAULT_LIMITS
    ) -> None:
        super().__init__(offsets_topic, limits)
        self.topics_by_name: dict[str, Topic] = {}
        """The topics for the lookups of every request; only this class changes the dict."""
        self.topics_by_id: dict[bytes, Topic] = {}
        self._by_key: dict[str, str] = {}
        self._names = OrderedNames()
        self._replace(None, offsets_topic)
        self.totals = Totals()  # which leave out `__consumer_offsets`
        for topic in topics:
            self._replace(None, topic)

    def __len__(self) -> int:
        return len(self.topics_by_name)

    def __iter__(self) -> Iterator[Topic]:
        """Yield the topics in order, each in its state at that moment; they may change meanwhile."""
        last = None
        while names := self._names.next_block_after(last):
            for name in names:
                topic = self.topics_by_name.get(name)
                if topic is not None:
                    yield topic
            last = names[-1]

    def get(self, name: str) -> Topic | None:
        """Return the topic of this name, None if there is none."""
        return self.topics_by_name.get(name)

    def by_id(self, topic_id: bytes) -> Topic | None:
        """Return the topic whose uuid has these 16 bytes, None if there is none."""
        return self.topics_by_id.get(topic_id)

    def find_same_or_colliding_name(self, name: str) -> str | None:
        """Return the name of the topic that has this name or a name that collides with it, else None."""
        return self._by_key.get(collision_key(name))

    def snapshot_topics(self) -> Collection[Topic]:
        """Return a snapshot of all topics but `__consumer_offsets`, in no order."""
        return [topic for topic in self.topics_by_name.values() if topic is not self.offsets_topic]

    def replace_offsets_topic(self, topic: Topic) -> None:
        """Replace `__consumer_offsets`, because behind a gateway clients know the cluster's topic by its id."""
        del self.topics_by_id[self.offsets_topic.id]
        self.topics_by_id[topic.id] = self.topics_by_name[topic.name] = self.offsets_topic = topic

    def make_draft(self) -> Draft:
        """Return a draft on which changes can be tried."""
        return Draft(self)

    def find_ids_missing_in(self, other: "Catalogue") -> Steps[list[bytes]]:
        """Return the ids of the topics that `other` does not have; nothing may change before the last step."""
        missing = []
        for topic_id in iterate_in_steps(self.topics_by_id, COUNTED_PER_STEP):
            if topic_id is None:
                yield
            elif topic_id not in other.topics_by_id:
                missing.append(topic_id)
        return missing

    def take_over_state_of(self, other: "Catalogue") -> None:
        """Take over the state of `other`, which must not be used afterwards."""
        for attribute in Catalogue.__slots__:
            setattr(self, attribute, getattr(other, attribute))
        for field in Totals.__struct_fields__:  # in the object that others hold
            setattr(self.totals, field, getattr(other.totals, field))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Catalogue)
            and self.offsets_topic == other.offsets_topic
            and self.topics_by_name == other.topics_by_name
        )

    __hash__ = None  # type: ignore[assignment]  # it changes

    def _replace(self, before: Topic | None, after: Topic | None) -> None:
        if before is not None:
            self.totals.add(before, -1)
        if before is not None and (after is None or after.name != before.name):
            del self.topics_by_name[before.name]
            del self.topics_by_id[before.id]
            del self._by_key[collision_key(before.name)]
            self._names.remove(before.name)
        if after is None:
            return
        self.totals.add(after)
        if before is None:
            key = collision_key(after.name)
            assert after.id not in self.topics_by_id, f"the id {after.id.hex()} is taken"
            assert key not in self._by_key, f"{after.name} collides with {self._by_key[key]}"
            self._by_key[key] = after.name
            self._names.add(after.name)
        self.topics_by_name[after.name] = after
        self.topics_by_id[after.id] = after
