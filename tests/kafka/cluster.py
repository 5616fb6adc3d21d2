# SPDX-License-Identifier: Apache-2.0
"""A real Kafka cluster of one or several brokers, with listeners for every security protocol, users and ACLs.

`PLAINTEXT` is always there: the brokers talk over it, and tests set things up on it, where no right is asked for
(its clients are `User:ANONYMOUS`, a super user).
"""

import base64
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

import confluent_kafka as ck
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourcePatternType,
    ResourceType,
)

from bench.ports import free_ports
from tests.kafka.broker import KafkaNode, replicated
from tests.kafka.jars import compiled
from tests.support.kafka_python import closed_after
from tests.support.raw import metadata
from tests.support.tls import TestAuthority
from tests.support.waiting import wait_until

PROTOCOLS: Final = ("PLAINTEXT", "SASL_PLAINTEXT", "SSL", "SASL_SSL")
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
USERS: Final = {"admin": "admin-secret", "alice": "alice-secret", "bob": "bob-secret"}
"""Passwords by name; `admin` is a super user where rights are asked for."""
BROKEN: Final = ("broken-group", "broken-topic", "broken-cluster")
"""Users for whom BrokenAuthorizer throws, if the cluster has them (`users`)."""
CONTROLLER_ID: Final = 100


class KafkaCluster:
    """Brokers with the ids 1 to n on loopback; one is its own controller, several have a separate one.

    So any broker of several may be killed without stopping the others. Start brokers in a thread that lives on (not in
    asyncio.to_thread): the kernel kills them with the thread that started them, as with the test run.
    """

    def __init__(
        self,
        work: Path,
        brokers: int = 1,
        *,
        protocols: Sequence[str] = ("PLAINTEXT",),
        acls: bool = False,
        authorizer: str = "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        users: Sequence[str] = (),
        settings: Mapping[str, str | int] | None = None,
        formatting: Sequence[str] = (),
    ) -> None:
        """Prepare the cluster under `work`.

        `protocols` are the listeners that each broker has (PLAINTEXT always); those with SASL take all of MECHANISMS
        and USERS. `acls` switches the authorizer on, Kafka's own or one of tests/kafka/java. `users` are known by
        SASL/PLAIN as well; the password of each is its name. `settings` come on top of each broker's.
        `formatting` are arguments for the formatting of the data directories.
        Skips the test where Java 17+ or Maven is missing (fails it in CI).
        """
        self._work = work
        self._protocols = [name for name in PROTOCOLS if name == "PLAINTEXT" or name in protocols]
        self._acls = acls
        self._authorizer = authorizer
        self._classes = None if "." in authorizer else compiled(authorizer, work / "classes")
        self._users = users
        self._formatted_with = formatting
        self._alone = brokers == 1
        self._extra = {**replicated(min(brokers, 3)), **(settings or {})}
        (self._controller_port,) = free_ports(1)
        self.authority = TestAuthority(work / "ca") if any("SSL" in name for name in protocols) else None
        self.brokers: dict[int, KafkaNode] = {}
        """The nodes by broker id, those that were killed too."""
        self._ports: dict[int, dict[str, int]] = {}
        self._admins: dict[str, AdminClient] = {}
        self._controller = None if self._alone else self._new_controller()
        for node_id in range(1, brokers + 1):
            self._prepare(node_id)

    # --- what there is ---

    def address(self, node_id: int, protocol: str = "PLAINTEXT") -> str:
        """`host:port` of one broker's listener."""
        return f"127.0.0.1:{self._ports[node_id][protocol]}"

    def bootstrap(self, protocol: str = "PLAINTEXT") -> str:
        """`host:port,...` of all brokers, running or not."""
        return ",".join(self.address(node_id, protocol) for node_id in self.brokers)

    @property
    def ca(self) -> Path:
        """The certificate that clients of the SSL listeners trust: PEM."""
        assert self.authority is not None, "the cluster has no SSL listener"
        return self.authority.certificate

    # --- processes ---

    def start(self) -> None:
        """Start all of it and return once each broker accepts clients and every broker is in the metadata."""
        if self._controller is not None:
            self._controller.launch()
        for broker in self.brokers.values():
            broker.launch()
        self.wait_until_up()

    def wait_until_up(self) -> None:
        """Return once all brokers that have a process accept clients and stand in each other's metadata."""
        running = {node_id for node_id, broker in self.brokers.items() if broker.runs}
        for node_id in running:
            self.brokers[node_id].wait_until_up()
        for node_id in running:
            wait_until(
                partial(self._knows, node_id, running),
                60.0,
                what=f"brokers {sorted(running)} in the metadata of {node_id}",
            )

    def kill9(self, node_id: int) -> None:
        """SIGKILL to one broker."""
        self.brokers[node_id].kill9()

    def restart(self, node_id: int) -> None:
        """Start a broker again on the same ports and data, killing it first when it still runs."""
        self.brokers[node_id].restart()
        self.wait_until_up()

    def add(self, node_id: int) -> None:
        """Start one more broker, which has no partition yet; only where there are several already."""
        assert not self._alone, "a broker that is its own controller stays alone"
        self._prepare(node_id)
        self.brokers[node_id].launch()
        self.wait_until_up()

    def replace(self, old: int, new: int) -> None:
        """Kill broker `old` for good and start `new`, at other ports, which takes over its copies of partitions."""
        if self.brokers[old].runs:
            self.kill9(old)
        del self.brokers[old]
        self.add(new)
        # kafka-python fails where it asks a broker that is gone and is still shown.
        wait_until(
            lambda: all(self._knows(each, {new}) and old not in self._shown(each) for each in self.brokers),
            what=f"the others to show broker {old} no more",
        )
        with self.admin_of_kafka_python() as admin:
            moved = _replacing(admin.describe_topics(), old, new)
            admin.alter_partition_reassignments(moved)
            wait_until(lambda: not admin.list_partition_reassignments(), what=f"partitions of {old} on {new}")

    def close(self) -> None:
        """End whatever still runs."""
        for node in (*self.brokers.values(), *filter(None, [self._controller])):
            node.close()

    # --- what clients do ---

    def client_settings(
        self, protocol: str = "PLAINTEXT", mechanism: str = "PLAIN", user: str = "admin"
    ) -> dict[str, Any]:
        """Settings of confluent-kafka's clients for one listener, as one of USERS."""
        settings: dict[str, Any] = {
            "bootstrap.servers": self.bootstrap(protocol),
            "security.protocol": protocol,
        }
        if "SSL" in protocol:
            settings["ssl.ca.location"] = str(self.ca)
        if "SASL" in protocol:
            settings["sasl.mechanism"] = mechanism
            if mechanism == "OAUTHBEARER":
                settings["oauth_cb"] = lambda _config: (unsecured_token(user), time.time() + 3600)
            else:
                settings |= {"sasl.username": user, "sasl.password": USERS[user]}
        return settings

    def admin(self, node_id: int | None = None) -> AdminClient:
        """confluent-kafka's admin client, where no right is asked for: of one broker, or of all."""
        bootstrap = self.bootstrap() if node_id is None else self.address(node_id)
        if bootstrap not in self._admins:
            self._admins[bootstrap] = AdminClient(
                {"bootstrap.servers": bootstrap, "log_level": 0, "reconnect.backoff.max.ms": 200}
            )
        return self._admins[bootstrap]

    @contextmanager
    def admin_of_kafka_python(self) -> Iterator[Any]:
        """kafka-python's admin client, which reassigns partitions, where no right is asked for."""
        from kafka import KafkaAdminClient

        with closed_after(KafkaAdminClient(bootstrap_servers=self.bootstrap())) as admin:
            yield admin

    def metadata(self, node_id: int | None = None, topic: str | None = None) -> Any:
        """confluent-kafka's cluster metadata, as one broker (or any) has it."""
        return self.admin(node_id).list_topics(topic, timeout=120)

    def create_topic(
        self, name: str, partitions: int = 1, replicas: int | None = None, **config: str
    ) -> None:
        """Create a topic with `replicas` copies (as many as brokers run, at most 3) and wait for its leaders.

        `config` are its settings, with `_` for `.`.
        """
        running = sum(broker.runs for broker in self.brokers.values())
        settings = {key.replace("_", "."): value for key, value in config.items()}
        topic = NewTopic(name, partitions, replicas or min(3, running), config=settings)
        self.admin().create_topics([topic])[name].result(120)
        self.wait_for_leaders(name, partitions)

    def grow_topic(self, name: str, partitions: int) -> None:
        """Give a topic so many partitions in all and wait for their leaders."""
        self.admin().create_partitions([NewPartitions(name, partitions)])[name].result(120)
        self.wait_for_leaders(name, partitions)

    def delete_topic(self, name: str) -> None:
        """Delete a topic and return once no broker shows it any more."""
        self.admin().delete_topics([name])[name].result(120)
        wait_until(lambda: name not in self.metadata().topics, what=f"{name} to go")

    def ends(self, topic: str) -> dict[int, int]:
        """Where each partition of a topic ends: the offset that its next record will have."""
        partitions = self.metadata(topic=topic).topics[topic].partitions
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        asked = {ck.TopicPartition(topic, each): latest for each in partitions}
        found = self.admin().list_offsets(asked)
        return {part.partition: future.result(120).offset for part, future in found.items()}

    def wait_for_leaders(self, name: str, partitions: int) -> None:
        """Return once every running broker shows so many partitions of a topic, each with a leader that runs."""
        running = [node_id for node_id, broker in self.brokers.items() if broker.runs]

        def led(node_id: int) -> bool:
            told = self._told(node_id, name)
            parts = told.topics[0].partitions if told is not None else []
            return len(parts) == partitions and all(part.leader_id in running for part in parts)

        for node_id in running:
            wait_until(partial(led, node_id), what=f"leaders of {name} at {node_id}")

    def wait_until_in_sync(self) -> None:
        """Return once every partition has all of its copies in sync, so that any broker may be killed next.

        Kafka elects no leader out of copies that were behind, or were killed as the only ones in sync (KIP-966).
        """

        def in_sync() -> bool:
            try:
                topics = self.admin().list_topics(timeout=5).topics.values()
            except ck.KafkaException:
                return False  # its connection was lost, and is made anew
            parts = [part for topic in topics for part in topic.partitions.values()]
            return all(set(part.isrs) == set(part.replicas) and part.leader >= 0 for part in parts)

        wait_until(in_sync, what="all copies to be in sync")

    def produce(self, topic: str, count: int, *, partition: int | None = None, first: int = 0) -> None:
        """Write `count` records and return once all are acknowledged: key and value are the record's number.

        Without a partition they go round the topic's.
        """
        producer = ck.Producer({"bootstrap.servers": self.bootstrap(), "acks": "all", "log_level": 0})
        failed: list[str] = []
        everywhere = list(self.metadata(topic=topic).topics[topic].partitions)

        def done(error: Any, _message: Any) -> None:
            if error is not None:
                failed.append(str(error))

        for number in range(first, first + count):
            to = everywhere[number % len(everywhere)] if partition is None else partition
            text = str(number).encode()
            producer.produce(topic, text, text, partition=to, on_delivery=done)
            producer.poll(0)
        assert producer.flush(60) == 0, f"{len(producer)} of {count} records were not written"
        assert not failed, f"{len(failed)} of {count} records were refused: {failed[0]}"

    def allow(
        self,
        user: str,
        operation: str,
        resource: str,
        name: str,
        *,
        prefix: bool = False,
        deny: bool = False,
        host: str = "*",
    ) -> None:
        """Give (or `deny`) a user an operation (`READ`) on a `TOPIC`, `GROUP`, `TRANSACTIONAL_ID` or the `BROKER`.

        With `host` it counts for that address only. The cluster's name is `kafka-cluster`, and `BROKER` is
        confluent-kafka's word for it. Returns once every running broker knows it.
        """
        pattern = ResourcePatternType.PREFIXED if prefix else ResourcePatternType.LITERAL
        permission = AclPermissionType.DENY if deny else AclPermissionType.ALLOW
        binding = AclBinding(
            ResourceType[resource], name, pattern, f"User:{user}", host, AclOperation[operation], permission
        )
        self.create_acls([binding])

    def create_acls(self, bindings: Sequence[AclBinding]) -> None:
        """Create all of these and return once every running broker knows them."""
        for future in self.admin().create_acls(list(bindings)).values():
            future.result(120)
        wanted = set(bindings)
        everything = AclBindingFilter(
            ResourceType.ANY,
            cast("str", None),  # whose annotations do not know that any name is None
            ResourcePatternType.ANY,
            cast("str", None),
            cast("str", None),
            AclOperation.ANY,
            AclPermissionType.ANY,
        )

        def known(node_id: int) -> bool:
            return wanted <= set(self.admin(node_id).describe_acls(everything).result(120))

        for node_id, broker in self.brokers.items():
            if broker.runs:
                wait_until(partial(known, node_id), what=f"{len(wanted)} acls at {node_id}")

    # --- configuration ---

    def _knows(self, node_id: int, others: set[int]) -> bool:
        return self._shown(node_id) >= others

    def _shown(self, node_id: int) -> set[int]:
        """The brokers that one broker shows; none while it does not answer."""
        told = self._told(node_id)
        return set() if told is None else {broker.node_id for broker in told.brokers}

    def _told(self, node_id: int, topic: str = "none") -> Any:
        """The Metadata of one broker, asked anew over a connection of its own; None while it does not answer."""
        try:
            return metadata(self.address(node_id), topic)
        except OSError:
            return None

    def _new_controller(self) -> KafkaNode:
        settings = {
            "process.roles": "controller",
            "node.id": CONTROLLER_ID,
            "listeners": f"CONTROLLER://127.0.0.1:{self._controller_port}",
            **self._common(),
        }
        return KafkaNode(
            self._work / "controller",
            port=self._controller_port,
            settings=settings,
            formatting=self._formatting(),
            classes=self._classes,
        )

    def _prepare(self, node_id: int) -> None:
        assert node_id not in self.brokers, f"there is a broker {node_id}"
        ports = self._ports[node_id] = dict(
            zip(self._protocols, free_ports(len(self._protocols)), strict=True)
        )
        listeners = ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items())
        ours = f",CONTROLLER://127.0.0.1:{self._controller_port}" if self._alone else ""
        settings = {
            "process.roles": "broker,controller" if self._alone else "broker",
            "node.id": node_id,
            "listeners": listeners + ours,
            "advertised.listeners": listeners,
            "inter.broker.listener.name": "PLAINTEXT",
            **self._common(),
            **self._ssl(node_id),
            **self._sasl(),
            "group.initial.rebalance.delay.ms": 0,
            **self._extra,
        }
        self.brokers[node_id] = KafkaNode(
            self._work / f"broker-{node_id}",
            port=ports["PLAINTEXT"],
            settings=settings,
            formatting=self._formatting() if self._alone else (),
            classes=self._classes,
        )

    def _common(self) -> dict[str, str | int]:
        voter = 1 if self._alone else CONTROLLER_ID
        names = [*self._protocols, "CONTROLLER"]
        kinds = ",".join(f"{name}:{'PLAINTEXT' if name == 'CONTROLLER' else name}" for name in names)
        common: dict[str, str | int] = {
            "controller.quorum.voters": f"{voter}@127.0.0.1:{self._controller_port}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": kinds,
            # a killed broker is missed after 2 s, not 9
            "broker.session.timeout.ms": 2_000,
            "broker.heartbeat.interval.ms": 500,
        }
        if self._acls:
            common["authorizer.class.name"] = self._authorizer
            common["super.users"] = "User:ANONYMOUS;User:admin"
        return common

    def _ssl(self, node_id: int) -> dict[str, str | int]:
        if self.authority is None:
            return {}
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.authority.key_store(f"broker-{node_id}")),
            "ssl.client.auth": "none",
        }

    def _sasl(self) -> dict[str, str | int]:
        settings: dict[str, str | int] = {}
        passwords = {**{name: name for name in self._users}, **USERS}
        users = " ".join(f'user_{name}="{password}"' for name, password in passwords.items())
        security = "org.apache.kafka.common.security"
        modules = {
            "plain": f"{security}.plain.PlainLoginModule required {users};",
            "scram-sha-256": f"{security}.scram.ScramLoginModule required;",
            "scram-sha-512": f"{security}.scram.ScramLoginModule required;",
            "oauthbearer": f"{security}.oauthbearer.OAuthBearerLoginModule required "
            'unsecuredLoginStringClaim_sub="admin";',
        }
        for protocol in self._protocols:
            if "SASL" in protocol:
                settings["sasl.enabled.mechanisms"] = ",".join(MECHANISMS)
                prefix = f"listener.name.{protocol.lower()}"
                settings |= {f"{prefix}.{name}.sasl.jaas.config": text for name, text in modules.items()}
        return settings

    def _formatting(self) -> list[str]:
        if not any("SASL" in protocol for protocol in self._protocols):
            return [*self._formatted_with]
        scram = [
            argument
            for mechanism in MECHANISMS
            if mechanism.startswith("SCRAM")
            for name, password in USERS.items()
            for argument in ("--add-scram", f"{mechanism}=[name={name},password={password}]")
        ]
        return [*self._formatted_with, *scram]


def unsecured_token(user: str, lifetime_s: int = 3600) -> str:
    """Return a JWT without a signature, which Kafka's OAUTHBEARER takes by default, for a principal."""
    now = int(time.time())
    claims = {"sub": user, "iat": now, "exp": now + lifetime_s}
    return f"{_base64url({'alg': 'none'})}.{_base64url(claims)}."


def _base64url(value: Mapping[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def _replacing(topics: Sequence[Mapping[str, Any]], old: int, new: int) -> dict[Any, list[int]]:
    """For each partition with a copy at `old` its copies, with `new` in its place."""
    from kafka import TopicPartition

    return {
        TopicPartition(topic["name"], part["partition_index"]): [
            new if r == old else r for r in part["replica_nodes"]
        ]
        for topic in topics
        for part in topic["partitions"]
        if old in part["replica_nodes"]
    }
