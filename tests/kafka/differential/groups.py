# SPDX-License-Identifier: Apache-2.0
"""Groups that scenarios begin with: one for every state, made of ordinary members and left out of the transcript."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from protocol.errors import ErrorCode
from tests.kafka.differential.ordinary import ASSIGNMENT
from tests.kafka.differential.script import Link, Pending, Script

EMPTY: Final = "Empty"
PREPARING: Final = "PreparingRebalance"
COMPLETING: Final = "CompletingRebalance"
STABLE: Final = "Stable"
DEAD: Final = "Dead"


@dataclass
class Member:
    """A member with a connection of its own."""

    link: Link
    id: str
    generation: int
    instance_id: str | None = None

    @property
    def identity(self) -> dict[str, Any]:
        """The fields by which it is known."""
        return {"member_id": self.id, "group_instance_id": self.instance_id}

    @property
    def current(self) -> dict[str, Any]:
        """The same with its generation."""
        return {**self.identity, "generation_id": self.generation}

    def rejoin(self, **fields: Any) -> Pending:
        """Join again under its id."""
        return self.link.send_join(**{**self.identity, **fields})

    def send_sync(self, **fields: Any) -> Pending:
        """Sync in its generation."""
        return self.link.send_sync(**{**self.current, **fields})

    def sync(self, **fields: Any) -> Any:
        """Sync in its generation and wait for the answer."""
        return self.send_sync(**fields).reply()

    def heartbeat(self, **fields: Any) -> Any:
        """Heartbeat in its generation."""
        return self.link.heartbeat(**{**self.current, **fields})

    def leave(self, **fields: Any) -> Any:
        """Leave."""
        return self.link.leave(**{"members": [self.identity], **fields})

    def commit(self, version: int | None = None, **fields: Any) -> Any:
        """Commit in its generation."""
        mine = {**self.identity, "generation_id_or_member_epoch": self.generation}
        return self.link.commit(version, **{**mine, **fields})


@dataclass
class Group:
    """The members of a group, the leader first, and a connection of nobody's."""

    outsider: Link
    members: list[Member] = field(default_factory=list)

    @property
    def leader(self) -> Member:
        """The member that leads."""
        return self.members[0]

    @property
    def follower(self) -> Member:
        """The first of the others."""
        return self.members[1]


def assignments(members: Sequence[Member]) -> list[dict[str, Any]]:
    """What a leader's sync brings: the ordinary assignment for each member."""
    return [{"member_id": member.id, "assignment": ASSIGNMENT} for member in members]


def first_join(link: Link, instance_id: str | None = None, **fields: Any) -> Pending:
    """Join as a new member; a dynamic one asks for its id first."""
    if instance_id is not None:
        return link.send_join(group_instance_id=instance_id, **fields)
    refused = link.join(**fields)
    assert refused.error_code == ErrorCode.MEMBER_ID_REQUIRED, refused
    return link.send_join(member_id=refused.member_id, **fields)


def joined_group(
    script: Script, size: int = 2, instances: Sequence[str | None] | None = None, **fields: Any
) -> Group:
    """A group in CompletingRebalance, generation 2 (1 where it has one member): nobody has synced."""
    ids: Sequence[str | None] = instances or [None] * size
    with script.quietly():
        links = [script.connect() for _ in ids]
        first = first_join(links[0], ids[0], **fields).reply()
        members = [Member(links[0], first.member_id, first.generation_id, ids[0])]
        waiting = []
        for count, (link, instance_id) in enumerate(zip(links[1:], ids[1:], strict=True), 2):
            waiting.append(first_join(link, instance_id, **fields))
            script.until(PREPARING, members=count, group=fields.get("group_id"))
        if waiting:
            answers = [answer.reply() for answer in [members[0].rejoin(**fields), *waiting]]
            assert all(answer.leader == first.member_id for answer in answers), answers
            members = [
                Member(link, answer.member_id, answer.generation_id, instance_id)
                for link, answer, instance_id in zip(links, answers, ids, strict=True)
            ]
        for member in members:
            script.names.text(member.id)  # from the leader on, in the order in which they joined
        return Group(script.connect(), members)


def stable_group(
    script: Script, size: int = 2, instances: Sequence[str | None] | None = None, **fields: Any
) -> Group:
    """A group in Stable: generation 2, or 1 where it has one member."""
    group = joined_group(script, size, instances, **fields)
    mine = {"group_id": fields["group_id"]} if "group_id" in fields else {}
    with script.quietly():
        group.leader.sync(assignments=assignments(group.members), **mine)
        for member in group.members[1:]:
            member.sync(**mine)
    script.record(f"# a Stable group of {_told(script, group)}")
    return group


def completing_group(
    script: Script, size: int = 2, instances: Sequence[str | None] | None = None, **fields: Any
) -> Group:
    """A group in CompletingRebalance where nobody has synced."""
    group = joined_group(script, size, instances, **fields)
    script.record(f"# a CompletingRebalance group of {_told(script, group)}")
    return group


@dataclass
class Preparing(Group):
    """A group in PreparingRebalance: `newcomer` waits in its join, nobody else has rejoined."""

    newcomer: Link | None = None
    waiting: Pending | None = None


def preparing_group(
    script: Script, size: int = 2, instances: Sequence[str | None] | None = None, **fields: Any
) -> Preparing:
    """A group in PreparingRebalance, because somebody new has joined a Stable one."""
    with script.quietly():
        stable = stable_group(script, size, instances, **fields)
        newcomer = script.connect("newcomer")
        waiting = first_join(newcomer, **fields)
        script.until(PREPARING, members=len(stable.members) + 1, group=fields.get("group_id"))
    script.record(f"# a PreparingRebalance group of {_told(script, stable)} and a newcomer who waits")
    return Preparing(stable.outsider, stable.members, newcomer, waiting)


def empty_group(
    script: Script, size: int = 2, instances: Sequence[str | None] | None = None, **fields: Any
) -> Group:
    """A group that all its members have left; `members` are the former ones."""
    with script.quietly():
        group = stable_group(script, size, instances, **fields)
        mine = {"group_id": fields["group_id"]} if "group_id" in fields else {}
        group.outsider.leave(members=[member.identity for member in group.members], **mine)
        script.until(EMPTY, members=0, group=fields.get("group_id"))
    script.record(f"# an Empty group, once of {_told(script, group)}")
    return group


def no_group(
    script: Script, size: int = 2, instances: Sequence[str | None] | None = None, **fields: Any
) -> Group:
    """No group, and members that were in it until it was deleted."""
    with script.quietly():
        group = empty_group(script, size, instances, **fields)
        group.outsider.delete_groups(groups_names=[fields.get("group_id", script.group)])
    script.record(f"# a deleted group, once of {_told(script, group)}")
    return group


def _told(script: Script, group: Group) -> str:
    named = [f"{script.names.text(member.id)} ({member.link.name})" for member in group.members]
    return f"{', '.join(named)}, generation {group.leader.generation}; {group.outsider.name} is an outsider"


IN_STATE: Final[Mapping[str, Callable[..., Group]]] = {
    EMPTY: empty_group,
    PREPARING: preparing_group,
    COMPLETING: completing_group,
    STABLE: stable_group,
    DEAD: no_group,
}
"""Makes a group in a state. Dead is what a group that does not exist is said to be."""
