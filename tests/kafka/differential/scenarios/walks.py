# SPDX-License-Identifier: Apache-2.0
"""Random walks: two clients do to one group whatever comes to their mind, the same on both servers.

Each seed is a scenario. The clients remember what they were told (ids, generations, what they lead) and mostly use
that, but not always. All timeouts are long, so only requests move the group. A walk ends early where Kafka's hash map
of members would choose the next leader: that is chance.
"""

import random
import time
from dataclasses import dataclass, field
from typing import Any

from protocol.errors import ErrorCode
from protocol.hot.join_group import JoinGroupResponse
from tests.kafka.differential.catalogue import scenario
from tests.kafka.differential.groups import PREPARING
from tests.kafka.differential.ordinary import SUBSCRIPTION, commit_topic, fetch_group, protocols
from tests.kafka.differential.scenarios.join_group import OTHER_METADATA
from tests.kafka.differential.scenarios.leave_group import leaving
from tests.kafka.differential.script import Link, Pending, Script

STEPS = 25
LONG_MS = 600_000
TRIES = 30
SEEDS = range(1, 61)


@dataclass
class Client:
    """What a client knows of itself."""

    link: Link
    instance_id: str | None
    member_id: str = ""
    old_ids: list[str] = field(default_factory=lambda: ["nobody"])
    generation: int = -1
    members: list[str] = field(default_factory=list)
    waiting: Pending | None = None

    def told(self, answer: JoinGroupResponse) -> None:
        """Remember what an answer to a join says."""
        if answer.error_code not in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
            return
        if answer.member_id and answer.member_id != self.member_id:
            self.old_ids.append(self.member_id)
            self.member_id = answer.member_id
        if answer.error_code == ErrorCode.NONE:
            self.generation = answer.generation_id
            self.members = sorted(member.member_id for member in answer.members)


class Walk:
    """One walk."""

    def __init__(self, script: Script, seed: int) -> None:
        self.script = script
        self.random = random.Random(seed)
        instances = self.random.choice([(None, None), (None, "i"), ("i", "j"), ("i", None)])
        self.clients = [Client(script.connect(f"client-{n}"), i) for n, i in enumerate(instances)]
        self.outsider = script.connect("outsider")
        self.leader = ""

    def run(self) -> None:
        """Take the steps, and see at the end where the group is."""
        for _ in range(STEPS):
            self._step()
            if self._leader_is_chance():
                self.script.note("the leader has gone and several others are there")
                return
            self._collect()
        self.outsider.describe()
        self.outsider.fetch_offsets()

    def _step(self) -> None:
        client = self.random.choice(self.clients)
        if client.waiting is not None:
            client = next((each for each in self.clients if each.waiting is None), client)
        if client.waiting is not None or self.random.random() < 0.12:
            self._outside()
        else:
            moves = [self._join] * 4 + [self._sync] * 4 + [self._heartbeat, self._commit] * 2 + [self._leave]
            self.random.choice(moves)(client)

    def _collect(self) -> None:
        """Read the answers that the last step has brought."""
        for client in self.clients:
            if client.waiting is not None and client.waiting.has_come():
                answer = client.waiting.reply()
                client.waiting = None
                if isinstance(answer, JoinGroupResponse):
                    client.told(answer)
                    self.leader = answer.leader or self.leader

    def _leader_is_chance(self) -> bool:
        """Whether the leader has left several others behind; first lets the last request have its effect."""
        for client in self.clients:
            if client.waiting is not None:
                client.waiting.has_come()
        for _ in range(TRIES):
            group = self.script.watch(self.script.group)
            if group.group_state != PREPARING or group.members:
                break
            # It becomes Empty at once, but by a timer; not so if members have left whose rebalance had begun. A node of
            # ours runs that timer before it answers twice; Kafka has a thread for it, and gets twice its grace.
            time.sleep(2 * self.script.server.grace_s / TRIES)
        members = {member.member_id for member in group.members}
        return bool(self.leader) and len(members) > 1 and self.leader not in members

    # --- what a client does

    def _rarely(self, chance: float = 0.15) -> bool:
        return self.random.random() < chance

    def _identity(self, client: Client) -> dict[str, Any]:
        member_id, instance_id = client.member_id, client.instance_id
        if self._rarely():
            member_id = self.random.choice(client.old_ids)
        if self._rarely(0.08):
            instance_id = self.random.choice([None, "i", "j", "k"])
        return {"member_id": member_id, "group_instance_id": instance_id}

    def _generation(self, client: Client) -> int:
        if self._rarely():
            return client.generation + self.random.choice([-1, 1, -client.generation - 1])
        return client.generation

    def _join(self, client: Client) -> None:
        fields = self._identity(client)
        if self._rarely():
            fields["member_id"] = ""
        if fields["member_id"].startswith("client-"):
            # A difference on purpose (given-out-ids-with-an-instance-id), so no walk goes there.
            fields["group_instance_id"] = None
        offered = self.random.choice([("range",)] * 5 + [("roundrobin", "range"), ("roundrobin",)])
        # A static member that comes back with another subscription: subscriptions-of-returned-static-members.
        other = SUBSCRIPTION if client.instance_id else OTHER_METADATA
        metadata = self.random.choice([SUBSCRIPTION] * 6 + [other])
        version = self.random.choice([9, 9, 9, 5, 3])
        client.waiting = client.link.send_join(
            version,
            **fields,
            session_timeout_ms=LONG_MS,
            rebalance_timeout_ms=LONG_MS,
            protocols=protocols(*offered, metadata=metadata),
        )

    def _sync(self, client: Client) -> None:
        given = [
            {"member_id": member, "assignment": f"{n}".encode()} for n, member in enumerate(client.members)
        ]
        client.waiting = client.link.send_sync(
            self.random.choice([5, 3]),
            **self._identity(client),
            generation_id=self._generation(client),
            assignments=given,
        )

    def _heartbeat(self, client: Client) -> None:
        client.link.heartbeat(**self._identity(client), generation_id=self._generation(client))

    def _commit(self, client: Client) -> None:
        client.link.commit(
            **self._identity(client),
            generation_id_or_member_epoch=self._generation(client),
            topics=[commit_topic(self.script, "apples", (0, self.random.randrange(100)))],
        )

    def _leave(self, client: Client) -> None:
        identity = self._identity(client)
        if client.instance_id is not None and self._rarely(0.4):
            identity["member_id"] = ""
        client.link.leave(members=[identity])

    # --- what somebody else does

    def _outside(self) -> None:
        choice = self.random.randrange(8)
        client = self.random.choice(self.clients)
        if choice == 0:
            self.outsider.delete_groups()
        elif choice == 1:
            self.outsider.delete_offsets()
        elif choice == 2:
            self.outsider.commit(topics=[commit_topic(self.script, "apples", (1, 5))])
        elif choice == 3:
            self.outsider.leave(members=[leaving(client.member_id), leaving("", "i")])
        elif choice == 4:
            self.outsider.leave(members=[leaving("", client.instance_id or "i")])
        elif choice == 5:
            self.outsider.fetch_offsets(groups=[fetch_group(self.script.group, None)])
        elif choice == 6:
            self.outsider.join(session_timeout_ms=LONG_MS, protocols=protocols("other"))
        else:
            self.outsider.describe()


@scenario(seed=SEEDS)
def walk(s: Script, seed: int) -> None:
    Walk(s, seed).run()
