# SPDX-License-Identifier: Apache-2.0
"""A consumer group under test: its topic, its members, and the conditions that tests wait for."""

import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.clients.member import Client, Member, MemberOptions
from tests.support import raw
from tests.support.waiting import wait_until

PARTITIONS = 12
ALL = set(range(PARTITIONS))


class Group:
    """One group of one client library on a topic of its own with 12 partitions."""

    def __init__(self, client: Client, bootstrap: str, work: Path, *, create_topic: bool = True) -> None:
        """Create the topic, unless that is left to the members, and wait for the group's coordinator."""
        self.client = client
        self.bootstrap = bootstrap
        self.id = f"group-{client.name}-{uuid.uuid4().hex[:12]}"
        self.topic = f"topic-{uuid.uuid4().hex[:12]}"
        self._work = work
        self._members: list[Member] = []
        if create_topic:
            raw.create_topic(bootstrap, self.topic, PARTITIONS)
        raw.wait_for_coordinator(bootstrap, self.id)

    def member(self, name: str, options: MemberOptions | None = None) -> Member:
        """Start one more member."""
        chosen = options or MemberOptions()
        member = Member(self.client, self.bootstrap, self.id, self.topic, name, self._work, chosen)
        self._members.append(member)
        return member

    def close(self) -> None:
        """End all members that still run."""
        for member in self._members:
            member.close()

    def wait_shared(self, members: Sequence[Member], timeout_s: float = 120.0) -> None:
        """Wait until these members hold all partitions between them, each exactly once, as evenly as it goes.

        And until the coordinator calls the group Stable with these members: what the clients hold then is final.
        """
        wait_until(
            lambda: is_even_split(members) and self._stable_with(len(members)),
            timeout_s,
            what=lambda: f"{len(members)} members to share the partitions:\n{self.diagnosis()}",
        )

    def generation(self, member_id: str, instance_id: str | None = None) -> int:
        """Find the group's generation out by asking: only in it is a member's heartbeat accepted."""
        for generation in range(1, 100):
            if raw.heartbeat(self.bootstrap, self.id, generation, member_id, instance_id) == raw.NONE:
                return generation
        raise AssertionError(f"no generation of {self.id} accepts {member_id}")

    def member_ids(self) -> dict[str, str]:
        """Return the coordinator's member ids by instance id, those of dynamic members by name (the client id).

        A replaced static member keeps the client id that its first incarnation had, in Kafka too.
        """
        described = raw.describe_group(self.bootstrap, self.id)
        return {
            member.group_instance_id or member.client_id: member.member_id for member in described.members
        }

    def diagnosis(self) -> str:
        """Return the state of everything, for a failure's message."""
        described = raw.describe_group(self.bootstrap, self.id)
        state = f"{self.id} is {described.group_state} with {self.member_ids()}; {self._members}"
        return "\n".join([state, *(member.diagnosis() for member in self._members)])

    def _stable_with(self, members: int) -> bool:
        described = raw.describe_group(self.bootstrap, self.id)
        return described.group_state == "Stable" and len(described.members) == members


class Groups:
    """Makes groups for one test, and ends them all."""

    def __init__(self, client: Client, work: Path) -> None:
        """All groups are of this client and log to this directory."""
        self._client = client
        self._work = work
        self._made: list[Group] = []

    def make(self, bootstrap: str, *, create_topic: bool = True) -> Group:
        """Make a group on the server there."""
        self._made.append(Group(self._client, bootstrap, self._work, create_topic=create_topic))
        return self._made[-1]

    def close(self) -> None:
        """End the members of all groups."""
        for group in self._made:
            group.close()


def is_even_split(members: Iterable[Member]) -> bool:
    """Tell whether the members hold every partition exactly once, none more than one above another."""
    held = [member.assignment for member in members]
    sizes = [len(each) for each in held]
    return sum(sizes) == PARTITIONS and set().union(*held) == ALL and max(sizes) - min(sizes) <= 1
