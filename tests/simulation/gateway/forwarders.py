# SPDX-License-Identifier: Apache-2.0
"""Clients that ask brokers for what tells one answer from all others, and groups' coordinators in between."""

import asyncio
import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from tests.simulation.gateway.model import CLUSTER_ID
from tests.simulation.gateway.permits import Permit
from tests.simulation.gateway.settings import (
    GROUPS,
    NOWHERE,
    OFFSETS_TOPIC,
    WORK_PARTITIONS,
    WORK_TOPIC,
)
from tests.simulation.gateway.talk import Asked, Talk
from tests.simulation.history import Broken
from tests.simulation.network import Lost
from tests.simulation.settings import SIDE_TOPIC

if TYPE_CHECKING:
    from tests.simulation.gateway.world import GatewayWorld

AT_ONCE_MAX: Final = 12
STALLS_SHARE: Final = 0.05
STALLS_S: Final = 4.0
DROPS_SHARE: Final = 0.04
HALVES_SHARE: Final = 0.02
LARGE_BYTES: Final = 180_000
TRANSACTION_KEY: Final = 1
NO_MEMBER_ANSWERS: Final = (ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID)


class Forwarder:
    """One user on one port at a time: sends many requests before the first answer."""

    def __init__(self, world: "GatewayWorld", name: str, user: str) -> None:
        self.world = world
        self.name = name
        self.user = user
        self.rng = random.Random(f"{world.seed}/{name}")
        self._nonce = self.rng.randrange(1 << 40)
        self._kinds: list[Callable[[Talk], Asked | None]] = [
            self._list_offsets,
            self._list_offsets,
            self._fetch,
            self._fetch_large,
            self._produce,
            self._produce_unanswered,
            self._metadata,
            self._describe_cluster,
            self._api_versions,
            self._find_coordinator,
            self._find_transactions,
            self._fetch_offsets,
            self._fetch_offsets,
            self._describe_groups,
            self._heartbeat,
            self._list_groups,
            self._delete_groups,
            self._offsets_topic,
        ]
        self._checks: dict[ApiKey, Callable[[Asked], None]] = {
            ApiKey.LIST_OFFSETS: self._see_offsets,
            ApiKey.FETCH: self._see_records,
            ApiKey.PRODUCE: self._see_produced,
            ApiKey.METADATA: self._see_metadata,
            ApiKey.DESCRIBE_CLUSTER: self._see_cluster,
            ApiKey.API_VERSIONS: self._see_versions,
            ApiKey.FIND_COORDINATOR: self._see_coordinator,
            ApiKey.OFFSET_FETCH: self._see_committed,
            ApiKey.DESCRIBE_GROUPS: self._see_groups,
            ApiKey.HEARTBEAT: self._see_heartbeat,
            ApiKey.LIST_GROUPS: self._see_list,
            ApiKey.DELETE_GROUPS: self._see_deleted,
        }

    async def run(self) -> None:
        """Do so for ever."""
        while True:
            await asyncio.sleep(self.rng.expovariate(1))
            port = self.rng.choice(self.world.ports())
            try:
                talk = await Talk(self.world, self.name, self.user, port).log_in()
                while self.rng.random() < 0.8:
                    await self._exchange(talk)
                    await asyncio.sleep(self.rng.expovariate(2))
                talk.drop()
            except Lost:
                await asyncio.sleep(0.5)

    async def _exchange(self, talk: Talk) -> None:
        """Send some requests at once, and hear all answers; or leave in between."""
        stalls = self.rng.random() < STALLS_SHARE
        if stalls:
            talk.end.stall()
        for _ in range(self.rng.randint(1, AT_ONCE_MAX)):
            self.rng.choice(self._kinds)(talk)
            if self.rng.random() < 0.1:
                await asyncio.sleep(self.rng.expovariate(100))
        if self.rng.random() < HALVES_SHARE:
            talk.half(ApiKey.METADATA, 8, topics=[{"name": WORK_TOPIC}] * 50)
            await asyncio.sleep(self.rng.random())
            talk.drop()
            raise Lost("left in the middle of a request")
        if stalls:
            await asyncio.sleep(self.rng.random() * STALLS_S)
            talk.end.go_on()
        while talk.awaited:
            if self.rng.random() < DROPS_SHARE:
                talk.drop()
                raise Lost("left before all was answered")
            asked = await talk.hear()
            self._checks[asked.api](asked)
            self.world.answered_at[talk.port] = self.world.loop.time()
            self.world.history.counts["answers"] += 1

    def _new_nonce(self) -> int:
        self._nonce += 1
        return self._nonce

    def _topic(self) -> str:
        return self.rng.choice((WORK_TOPIC, WORK_TOPIC, SIDE_TOPIC))

    def _same(self, asked: Asked, expected: object, found: object) -> None:
        if expected != found:
            raise Broken(
                "an answer reaches the client that asked",
                f"{self.name} asked for {expected!r} in {asked.api.name} {asked.number} and got {found!r}",
            )

    def _see(self, asked: Asked, error: int, permit: Permit) -> None:
        """An answer has this error where the permission decides."""
        refusal = {
            "GROUP": ErrorCode.GROUP_AUTHORIZATION_FAILED,
            "TOPIC": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        }[permit.resource]
        if error == refusal:
            self.world.rules.may_not_see(self.user, permit, asked.at_s)
        elif error == ErrorCode.NONE:
            self.world.rules.may_see(self.user, permit, asked.at_s)

    # --- what passes ---

    def _list_offsets(self, talk: Talk) -> Asked:
        part = {"partition_index": self.rng.randrange(WORK_PARTITIONS), "timestamp": self._new_nonce()}
        topics = [{"name": self._topic(), "partitions": [part]}]
        return talk.ask(ApiKey.LIST_OFFSETS, self.rng.choice((1, 5, 7)), replica_id=-1, topics=topics)

    def _see_offsets(self, asked: Asked) -> None:
        (wanted,) = asked.fields["topics"]
        (topic,) = asked.answer.topics
        (part,) = topic.partitions
        self._same(asked, wanted["name"], topic.name)
        self._see(asked, part.error_code, Permit("DESCRIBE", "TOPIC", topic.name))
        if not part.error_code:
            self._same(asked, wanted["partitions"][0]["timestamp"], part.offset)

    def _fetch(self, talk: Talk) -> Asked:
        return self._ask_for_records(talk, self.rng.randint(20, 400))

    def _fetch_large(self, talk: Talk) -> Asked:
        return self._ask_for_records(talk, self.rng.randint(10_000, LARGE_BYTES))

    def _ask_for_records(self, talk: Talk, size: int) -> Asked:
        part = {
            "partition": self.rng.randrange(3),
            "fetch_offset": self._new_nonce(),
            "partition_max_bytes": size,
        }
        topics = [{"topic": self._topic(), "partitions": [part]}]
        return self._ask_to_fetch(talk, topics)

    def _ask_to_fetch(self, talk: Talk, topics: list[dict[str, Any]]) -> Asked:
        version = self.rng.choice((4, 8, 11, 12))
        return talk.ask(
            ApiKey.FETCH,
            version,
            max_wait_ms=1,
            min_bytes=1,
            max_bytes=1 << 20,
            topics=topics,
            forgotten_topics_data=[],
        )

    def _see_records(self, asked: Asked) -> None:
        wanted = {topic["topic"]: topic["partitions"][0] for topic in asked.fields["topics"]}
        self._same(asked, sorted(wanted), sorted(topic.topic for topic in asked.answer.responses))
        for topic in asked.answer.responses:
            (part,) = topic.partitions
            if topic.topic == OFFSETS_TOPIC:
                self._same(asked, ErrorCode.TOPIC_AUTHORIZATION_FAILED, part.error_code)
                continue
            self._see(asked, part.error_code, Permit("READ", "TOPIC", topic.topic))
            if not part.error_code:
                mark = f"{self.user} {wanted[topic.topic]['fetch_offset']} ".encode()
                records = bytes(part.records)
                size = wanted[topic.topic]["partition_max_bytes"]
                self._same(asked, (mark * (size // len(mark) + 1))[:size], records)

    def _offsets_topic(self, talk: Talk) -> Asked:
        """Among others the cluster's own, which is not read."""
        part = {"partition": 0, "fetch_offset": self._new_nonce(), "partition_max_bytes": 100}
        names = [OFFSETS_TOPIC, WORK_TOPIC] if self.rng.random() < 0.5 else [OFFSETS_TOPIC]
        return self._ask_to_fetch(talk, [{"topic": name, "partitions": [part]} for name in names])

    def _produce(self, talk: Talk) -> Asked:
        version = self.rng.choice((3, 9, 10, 12))
        return talk.ask(ApiKey.PRODUCE, version, **self._records(acks=1))

    def _produce_unanswered(self, talk: Talk) -> None:
        talk.tell(ApiKey.PRODUCE, self.rng.choice((3, 9, 12)), **self._records(acks=0))

    def _records(self, *, acks: int) -> dict[str, Any]:
        records = self._new_nonce().to_bytes(8, "big") + bytes(self.rng.randrange(3_000))
        part = {"index": self.rng.randrange(WORK_PARTITIONS), "records": records}
        data = [{"name": WORK_TOPIC, "partition_data": [part]}]
        return {"transactional_id": None, "acks": acks, "timeout_ms": 1_000, "topic_data": data}

    def _see_produced(self, asked: Asked) -> None:
        (topic,) = asked.answer.responses
        (row,) = topic.partition_responses
        (wanted,) = asked.fields["topic_data"][0]["partition_data"]
        self._same(asked, wanted["index"], row.index)
        self._see(asked, row.error_code, Permit("WRITE", "TOPIC", topic.name))
        if not row.error_code:
            self._same(asked, int.from_bytes(wanted["records"][:8], "big"), row.base_offset)
        places = getattr(asked.answer, "node_endpoints", None) or ()
        self.world.rules.leads_to((each.node_id, each.host, each.port) for each in places)

    # --- what is rewritten ---

    def _metadata(self, talk: Talk) -> Asked:
        version = self.rng.choice((1, 5, 8, 9, 12))
        topics = self.rng.choice((None, [], [{"name": WORK_TOPIC}], [{"name": SIDE_TOPIC}]))
        return talk.ask(ApiKey.METADATA, version, topics=topics, allow_auto_topic_creation=False)

    def _see_metadata(self, asked: Asked) -> None:
        self.world.rules.leads_to((each.node_id, each.host, each.port) for each in asked.answer.brokers)
        for topic in asked.answer.topics:
            self._see(asked, topic.error_code, Permit("DESCRIBE", "TOPIC", topic.name))

    def _describe_cluster(self, talk: Talk) -> Asked:
        return talk.ask(ApiKey.DESCRIBE_CLUSTER, self.rng.choice((0, 1)))

    def _see_cluster(self, asked: Asked) -> None:
        self.world.rules.leads_to((each.broker_id, each.host, each.port) for each in asked.answer.brokers)

    def _api_versions(self, talk: Talk) -> Asked:
        there = talk.node_id
        meant = self.rng.choice(({}, *({"cluster_id": CLUSTER_ID, "node_id": there + n} for n in (0, 1))))
        software = {"client_software_name": "simulated", "client_software_version": "1"}
        return talk.ask(ApiKey.API_VERSIONS, 5, **software, **meant)

    def _see_versions(self, asked: Asked) -> None:
        is_another = asked.fields.get("node_id", asked.node_id) != asked.node_id
        error = ErrorCode.REBOOTSTRAP_REQUIRED if is_another else ErrorCode.NONE
        self._same(asked, error, asked.answer.error_code)

    def _find_transactions(self, talk: Talk) -> Asked:
        version = self.rng.choice((1, 3, 4))
        key = f"transaction-{self._new_nonce()}"
        return talk.ask(
            ApiKey.FIND_COORDINATOR, version, key=key, key_type=TRANSACTION_KEY, coordinator_keys=[key]
        )

    def _find_coordinator(self, talk: Talk) -> Asked:
        version, key = self.rng.choice((0, 3, 4)), self.rng.choice(GROUPS)
        return talk.ask(ApiKey.FIND_COORDINATOR, version, key=key, key_type=0, coordinator_keys=[key])

    def _see_coordinator(self, asked: Asked) -> None:
        several = asked.version >= 4
        found = asked.answer.coordinators[0] if several else asked.answer
        if several:
            self._same(asked, asked.fields["key"], found.key)
        if not found.error_code:
            self.world.rules.leads_to([(found.node_id, found.host, found.port)])
        if asked.fields["key_type"] != TRANSACTION_KEY:
            self._see(asked, found.error_code, Permit("DESCRIBE", "GROUP", asked.fields["key"]))

    # --- what is asked about groups ---

    def _fetch_offsets(self, talk: Talk) -> Asked:
        group = self.rng.choice(GROUPS)
        topics = [{"name": WORK_TOPIC, "partition_indexes": [0, 1]}]
        version = self.rng.choice((5, 8))
        if version == 8:
            others = [each for each in GROUPS if self.rng.random() < 0.5 and each != group]
            asked = [{"group_id": each, "topics": topics} for each in (group, *others)]
            return talk.ask(ApiKey.OFFSET_FETCH, version, groups=asked)
        return talk.ask(ApiKey.OFFSET_FETCH, version, group_id=group, topics=topics)

    def _see_committed(self, asked: Asked) -> None:
        rows = asked.answer.groups if asked.version >= 8 else [asked.answer]
        wanted = asked.fields.get("groups") or [asked.fields]
        names = [each["group_id"] for each in wanted]
        if asked.version >= 8:
            self._same(asked, names, [row.group_id for row in rows])
        for name, row in zip(names, rows, strict=True):
            self._see(asked, row.error_code, Permit("DESCRIBE", "GROUP", name))
            for topic in row.topics:
                for part in topic.partitions:
                    if not row.error_code:
                        self._see(asked, part.error_code, Permit("DESCRIBE", "TOPIC", topic.name))

    def _describe_groups(self, talk: Talk) -> Asked:
        groups = [each for each in GROUPS if self.rng.random() < 0.6] or [GROUPS[0]]
        return talk.ask(ApiKey.DESCRIBE_GROUPS, self.rng.choice((0, 5, 6)), groups=groups)

    def _see_groups(self, asked: Asked) -> None:
        # Kafka lists those that are refused apart.
        self._same(
            asked, sorted(asked.fields["groups"]), sorted(each.group_id for each in asked.answer.groups)
        )
        for group in asked.answer.groups:
            error = group.error_code
            if error == ErrorCode.GROUP_ID_NOT_FOUND:
                error = ErrorCode.NONE
            self._see(asked, error, Permit("DESCRIBE", "GROUP", group.group_id))

    def _heartbeat(self, talk: Talk) -> Asked:
        group = self.rng.choice(GROUPS)
        return talk.ask(
            ApiKey.HEARTBEAT,
            self.rng.choice((0, 4)),
            group_id=group,
            generation_id=7,
            member_id="nobody",
            group_instance_id=None,
        )

    def _see_heartbeat(self, asked: Asked) -> None:
        error = asked.answer.error_code
        if error in NO_MEMBER_ANSWERS:
            error = ErrorCode.NONE
        self._see(asked, error, Permit("READ", "GROUP", asked.fields["group_id"]))

    def _list_groups(self, talk: Talk) -> Asked:
        return talk.ask(ApiKey.LIST_GROUPS, self.rng.choice((0, 4)), states_filter=[])

    def _see_list(self, asked: Asked) -> None:
        for group in asked.answer.groups:
            self._see(asked, ErrorCode.NONE, Permit("DESCRIBE", "GROUP", group.group_id))

    def _delete_groups(self, talk: Talk) -> Asked:
        """A group that there never is."""
        return talk.ask(ApiKey.DELETE_GROUPS, self.rng.choice((0, 3)), groups_names=[NOWHERE])

    def _see_deleted(self, asked: Asked) -> None:
        (row,) = asked.answer.results
        self._same(asked, NOWHERE, row.group_id)
        error = ErrorCode.NONE if row.error_code == ErrorCode.GROUP_ID_NOT_FOUND else row.error_code
        self._see(asked, error, Permit("DELETE", "GROUP", row.group_id))
