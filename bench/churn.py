# SPDX-License-Identifier: Apache-2.0
"""The scenario `groups`: many groups of one member each, which joins, syncs, commits and leaves.

The frames depend on the member id that the server gives out, so they are made from templates: encoded once
with marks in the place of the group's and the member's name, which are then replaced by names of the same
length. A good reply is remembered the same way, so that the next one costs a comparison and no decoding.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from bench import wire
from bench.cluster import MEMBER_ID_REQUIRED, Cluster
from bench.dialect import Dialect, Member, Topic, assignment
from bench.load import Lane, Prepared
from bench.scenarios import PARTITIONS, TOPIC, Shape, share_out, unique_prefix
from bench.wire import BadReply, Call

FIRST_GENERATION: Final = 1  # of a group that did not exist
COMMITTED: Final = {0: 42}
SERVED_SAMPLE: Final = 300  # enough groups to meet every offsets partition

FIRST_JOIN: Final = "first join"
JOIN: Final = "join"
SYNC: Final = "sync"
COMMIT: Final = "commit"
LEAVE: Final = "leave"
AFTER: Final = {FIRST_JOIN: JOIN, JOIN: SYNC, SYNC: COMMIT, COMMIT: LEAVE, LEAVE: None}


class Recipe:
    """Frames and good replies of every step, for group names of one length. Shared by all connections."""

    def __init__(self, dialect: Dialect, topic: Topic, group_length: int) -> None:
        self._dialect = dialect
        self._topic = topic
        self._group_mark = "#" * group_length
        self._calls: dict[tuple[str, int], Call] = {}
        self._good: dict[tuple[str, int], bytes] = {}
        self._outline: _Outline | None = None
        self.completed = 0

    def frame(self, step: str, group: bytes, member: bytes) -> bytes:
        """The request of a step."""
        return self._fill(self._call(step, len(member)).frame, group, member)

    def good_reply(self, step: str, group: bytes, member: bytes) -> bytes | None:
        """What a good reply looks like from behind the correlation id on, if one was seen."""
        seen = self._good.get((step, len(member)))
        return None if seen is None else self._fill(seen, group, member)

    def read(self, step: str, group: bytes, member: bytes, reply: bytes) -> bytes:
        """Judge a reply and remember it if good; returns the member id. Raises BadReply."""
        if step == FIRST_JOIN:
            return self._read_first_join(reply)
        call = self._call(step, len(member))
        if step == COMMIT:
            self._dialect.check_commit(self._topic, list(COMMITTED), reply)
        else:
            message = call.decode_good(reply)
            if step == JOIN:
                name = member.decode()
                seen = (message.generation_id, message.leader, message.member_id, len(message.members))
                if seen != (FIRST_GENERATION, name, name, 1):
                    raise BadReply(f"JoinGroup: a new group of one member has {seen}")
            elif step == SYNC and message.assignment != assignment(self._topic.name, [0]):
                raise BadReply("SyncGroup: not the assignment that the leader sent")
        self._good[step, len(member)] = self._mark(reply[4:], group, member)
        return member

    def _read_first_join(self, reply: bytes) -> bytes:
        if self._outline is not None and (found := self._outline.member_in(reply[4:])) is not None:
            return found
        call = self._call(FIRST_JOIN, 0)
        message = call.decode(reply)
        if not wire.error_codes(message) <= {MEMBER_ID_REQUIRED} or not message.member_id:
            wire.refuse_errors(wire.JOIN_GROUP, message)
            raise BadReply("JoinGroup: no member id")
        member: bytes = message.member_id.encode()
        if message.error_code and reply.count(member) == 1:
            before, after = reply[4:].split(member)
            self._outline = _Outline(before, after, len(member))
        return member

    def _call(self, step: str, member_length: int) -> Call:
        key = step, member_length
        if key not in self._calls:
            self._calls[key] = self._build(
                step, Member(self._group_mark, "@" * member_length, FIRST_GENERATION)
            )
        return self._calls[key]

    def _build(self, step: str, member: Member) -> Call:
        if step in {FIRST_JOIN, JOIN}:
            return self._dialect.join(self._topic, member.group, member.member_id)
        if step == SYNC:
            return self._dialect.sync(self._topic, member)
        if step == COMMIT:
            return self._dialect.commit(self._topic, member, COMMITTED)
        return self._dialect.leave(member)

    def _fill(self, template: bytes, group: bytes, member: bytes) -> bytes:
        filled = template.replace(self._group_mark.encode(), group)
        return filled.replace(b"@" * len(member), member) if member else filled

    def _mark(self, reply: bytes, group: bytes, member: bytes) -> bytes:
        return reply.replace(group, self._group_mark.encode()).replace(member, b"@" * len(member))


class _Outline(NamedTuple):
    """A good MEMBER_ID_REQUIRED reply: what stands before and after the member id, and the id's length."""

    before: bytes
    after: bytes
    length: int

    def member_in(self, reply: bytes) -> bytes | None:
        """The member id in a reply that is the same otherwise; None when it is not."""
        start = len(self.before)
        same = len(reply) == start + self.length + len(self.after)
        if same and reply.startswith(self.before) and reply.endswith(self.after):
            return reply[start : start + self.length]
        return None


class Step(Prepared):
    """One request of one group, sent once."""

    __slots__ = ("group", "member", "name", "recipe")

    def __init__(self, recipe: Recipe, name: str, group: bytes, member: bytes = b"") -> None:
        super().__init__(recipe.frame(name, group, member), self._read)
        self.recipe, self.name, self.group, self.member = recipe, name, group, member
        good = recipe.good_reply(name, group, member)
        if good is not None:
            self.good, self.good_length = good, len(good) + 4

    def _read(self, reply: bytes) -> None:
        self.member = self.recipe.read(self.name, self.group, self.member, reply)

    def next(self) -> "Step | None":
        """The request after this one; None when the group is done."""
        name = AFTER[self.name]
        return None if name is None else Step(self.recipe, name, self.group, self.member)


class Chains:
    """A source that takes one group after another through all steps; a group with an error is given up."""

    def __init__(self, recipe: Recipe, groups: Sequence[str]) -> None:
        self._recipe = recipe
        self._groups: Iterator[str] = iter(groups)

    def first(self) -> Prepared | None:
        """The first step of the next group."""
        group = next(self._groups, None)
        return None if group is None else Step(self._recipe, FIRST_JOIN, group.encode())

    def following(self, answered: Prepared, good: bool) -> Prepared | None:
        """The group's next step, or another group's first."""
        assert isinstance(answered, Step)
        if not good:
            return self.first()
        following = answered.next()
        if following is None:
            self._recipe.completed += 1
            return self.first()
        return following

    def stop(self) -> None:
        """Start no more groups."""
        self._groups = iter(())


class Churn(NamedTuple):
    """The prepared scenario."""

    cluster: Cluster
    recipe: Recipe
    groups: list[str]
    lanes: list[Lane]

    def clear(self) -> None:
        """Delete the groups. Raises OSError and BadReply."""
        self.cluster.delete_groups(self.groups)


def prepare(cluster: Cluster, shape: Shape, *, prefix: str = "bench") -> Churn:
    """Prepare `shape.groups` new groups. Raises Unprepared."""
    topic = cluster.ensure_topic(TOPIC, PARTITIONS)
    start = unique_prefix(prefix, "groups")
    groups = [f"{start}-{number:08d}" for number in range(shape.groups)]
    cluster.wait_until_served(groups[:SERVED_SAMPLE], topic)
    recipe = Recipe(cluster.dialect, topic, len(groups[0].encode()))
    parts = share_out(cluster.look_up_coordinators(groups), min(shape.connections, len(groups)))
    lanes = [Lane(address, Chains(recipe, mine)) for address, mine in parts]
    return Churn(cluster, recipe, groups, lanes)
