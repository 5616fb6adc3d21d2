# SPDX-License-Identifier: Apache-2.0
"""All topics of a node as they are on disk; pure."""

from collections.abc import Collection, Iterable, Iterator

from coordinator.catalogue.limits import DEFAULT_LIMITS, TopicLimits, Totals
from coordinator.catalogue.names import collision_key
from coordinator.catalogue.sorted_names import OrderedNames
from coordinator.catalogue.steps import COUNTED_PER_STEP, Steps, in_steps
from coordinator.catalogue.topic import Topic
from coordinator.catalogue.topics import Draft, Topics


class Catalogue(Topics):
    """Topics by name and by id, iterated in the order of their names."""

    __slots__ = ("_by_key", "_names", "topics_by_id", "topics_by_name")

    def __init__(
        self, offsets_topic: Topic, topics: Iterable[Topic] = (), limits: TopicLimits = DEFAULT_LIMITS
    ) -> None:
        super().__init__(offsets_topic, limits)
        self.topics_by_name: dict[str, Topic] = {}
        """For what every request looks up; only this class changes them."""
        self.topics_by_id: dict[bytes, Topic] = {}
        self._by_key: dict[str, str] = {}
        self._names = OrderedNames()
        self._replace(None, offsets_topic)
        self.totals = Totals()  # which count no topic of our own
        for topic in topics:
            self._replace(None, topic)

    def __len__(self) -> int:
        return len(self.topics_by_name)

    def __iter__(self) -> Iterator[Topic]:
        """The topics in order, each as it is when its turn comes; they may change meanwhile."""
        last = None
        while names := self._names.after(last):
            for name in names:
                topic = self.topics_by_name.get(name)
                if topic is not None:
                    yield topic
            last = names[-1]

    def get(self, name: str) -> Topic | None:
        """The topic of this name."""
        return self.topics_by_name.get(name)

    def by_id(self, topic_id: bytes) -> Topic | None:
        """The topic whose uuid has these 16 bytes."""
        return self.topics_by_id.get(topic_id)

    def colliding(self, name: str) -> str | None:
        """The name of the topic that has this name or one that may not exist beside it."""
        return self._by_key.get(collision_key(name))

    def unsorted(self) -> Collection[Topic]:
        """All topics but `__consumer_offsets`, in no order: what they are now, whatever changes later."""
        return [topic for topic in self.topics_by_name.values() if topic is not self.offsets_topic]

    def take_offsets_topic(self, topic: Topic) -> None:
        """`__consumer_offsets` is another one: behind a gateway clients know the cluster's, by its id."""
        del self.topics_by_id[self.offsets_topic.id]
        self.topics_by_id[topic.id] = self.topics_by_name[topic.name] = self.offsets_topic = topic

    def draft(self) -> Draft:
        """Something to try changes on."""
        return Draft(self)

    def missing_in(self, other: "Catalogue") -> Steps[list[bytes]]:
        """The ids of the topics that `other` does not have; nothing may change before the last step."""
        missing = []
        for topic_id in in_steps(self.topics_by_id, COUNTED_PER_STEP):
            if topic_id is None:
                yield
            elif topic_id not in other.topics_by_id:
                missing.append(topic_id)
        return missing

    def adopt(self, other: "Catalogue") -> None:
        """Become what `other` is, which is used no more."""
        for attribute in Catalogue.__slots__:
            setattr(self, attribute, getattr(other, attribute))
        for field in Totals.__struct_fields__:  # in the object that others look at
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
