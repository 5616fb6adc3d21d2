# SPDX-License-Identifier: Apache-2.0
"""A Kafka whose clients log in, directly or behind a gateway, for the peers' tests of that."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from tests.gateway.whole import Whole
from tests.kafka.cluster import USERS, KafkaCluster
from tests.support.target import keeps_records, target_kind

WITH_RIGHTS: Final[Mapping[str, str | int]] = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
"""Settings of a Kafka without logins where rights can be given and taken: some of the tests do."""
PROTOCOL: Final = "SASL_PLAINTEXT"
PLAIN_USERS: Final = {**USERS, "test": "test"}
"""By name the passwords of those who log in with PLAIN; aiokafka's tests want `test`."""


class Logins(NamedTuple):
    """Where clients log in."""

    bootstrap: str
    """`host:port` of the chosen target, which speaks SASL_PLAINTEXT."""
    cluster: str
    """`host:port` of Kafka itself, where no right is asked for and nobody logs in."""
    user: tuple[str, str]
    """The name and password of one who can log in with SCRAM."""


@contextmanager
def logging_in(work: Path) -> Iterator[Logins | None]:
    """Run the chosen target under `work`, with Kafka's ACLs; None for Groupkeeper alone, which has no logins."""
    if not keeps_records():
        yield None
        return
    cluster = KafkaCluster(work / "kafka", protocols=(PROTOCOL,), acls=True, settings=_settings())
    front = _gateway(work, cluster) if target_kind() == "gateway" else None
    try:
        cluster.start()
        if front is not None:
            front.start()
        bootstrap = cluster.bootstrap(PROTOCOL) if front is None else front.bootstrap
        yield Logins(bootstrap, cluster.bootstrap(), ("alice", USERS["alice"]))
    finally:
        if front is not None:
            front.close()
        cluster.close()


def _settings() -> dict[str, str | int]:
    users = " ".join(f'user_{name}="{password}"' for name, password in PLAIN_USERS.items())
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    return {
        "allow.everyone.if.no.acl.found": "true",
        "num.partitions": 2,
        f"listener.name.{PROTOCOL.lower()}.plain.sasl.jaas.config": f"{module} required {users};",
    }


def _gateway(work: Path, cluster: KafkaCluster) -> Whole:
    password = work / "password"
    password.write_text(USERS["admin"])
    settings: dict[str, str | int] = {
        "upstream.security.protocol": PROTOCOL,
        "upstream.sasl.mechanism": "PLAIN",
        "upstream.sasl.username": "admin",
        "upstream.sasl.password.file": str(password),
    }
    return Whole(work / "gateway", cluster, settings, PROTOCOL)
