# SPDX-License-Identifier: Apache-2.0
"""Requests by several principals, at Kafka itself and through a gateway: the same answers, field by field."""

from collections.abc import Iterator
from typing import Any, Final
from uuid import UUID

import pytest
from kafka.protocol.sasl import SaslAuthenticateRequest, SaslHandshakeRequest

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    FindCoordinatorRequest,
    ListGroupsRequest,
    MetadataRequest,
    OffsetDeleteRequest,
    classes,
)
from tests.gateway.whole import Whole
from tests.kafka.cluster import BROKEN, USERS, KafkaCluster
from tests.support.raw import RawConnection, wait_for_coordinator

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

PROTOCOL: Final = "SASL_PLAINTEXT"
MAY_READ, MAY_DESCRIBE, NO_TOPIC, UNKNOWN = "may-read", "may-describe", "no-topic", "unknown-topic"
READS, DESCRIBES, DELETES, NO_GROUP = "reads", "describes", "deletes", "no-group"
TOPICS = (MAY_READ, NO_TOPIC, MAY_DESCRIBE, UNKNOWN)
GROUPS = (READS, NO_GROUP, DESCRIBES, DELETES)


DIFFERENCES: Final = {
    # Kafka refuses all of a request where its authorizer has thrown, and then each time that a group is named.
    "broken-group": {"delete"},
    # Here the groups of one request are decided apart.
    "broken-topic": {"fetch groups", "fetch by id"},
}
"""Requests that users hear something else to than at Kafka: docs/gateway.md, "Logins and rights"."""


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Whole]:
    """A broker where rights are asked for, behind a gateway: alice may do some things, bob none, admin all."""
    work = tmp_path_factory.mktemp("secured")
    cluster = KafkaCluster(work / "kafka", protocols=(PROTOCOL,), acls=True, authorizer="BrokenAuthorizer")
    password = work / "password"
    password.write_text(USERS["admin"])
    settings: dict[str, str | int] = {
        "upstream.security.protocol": PROTOCOL,
        "upstream.sasl.mechanism": "PLAIN",
        "upstream.sasl.username": "admin",
        "upstream.sasl.password.file": str(password),
        "gateway.adopt": "off",  # what the groups are at the cluster is what ours are compared with
    }
    running = Whole(work / "node", cluster, settings, PROTOCOL)
    try:
        cluster.start()
        for topic in (MAY_READ, MAY_DESCRIBE, NO_TOPIC):
            cluster.create_topic(topic, 2)
        for user in ("alice", *BROKEN):
            allow(cluster, user)
        for group in GROUPS:
            wait_for_coordinator(cluster.address(1), group)
        running.start()
        yield running
    finally:
        running.close()
        cluster.close()


def allow(cluster: KafkaCluster, user: str) -> None:
    """What alice may do, and those for whom the authorizer throws where it is asked about one kind of resource."""
    cluster.allow(user, "READ", "TOPIC", MAY_READ)
    cluster.allow(user, "DESCRIBE", "TOPIC", MAY_DESCRIBE)
    cluster.allow(user, "READ", "TOPIC", UNKNOWN)
    cluster.allow(user, "READ", "GROUP", READS)
    cluster.allow(user, "DESCRIBE", "GROUP", DESCRIBES)
    cluster.allow(user, "DELETE", "GROUP", DELETES)


def logged_in(bootstrap: str, user: str, source: str = "") -> RawConnection:
    """A connection of this user, from the address `source` if one is given."""
    connection = RawConnection(bootstrap, source=source)
    shaken = connection.call(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    assert shaken.error_code == 0
    token = f"\0{user}\0{USERS.get(user, user)}".encode()
    assert connection.call(SaslAuthenticateRequest(auth_bytes=token), 2).error_code == 0
    return connection


def request_of(api: ApiKey, **fields: Any) -> Any:
    """A request of kafka-python's class for this api, hot ones too."""
    return classes(api)[0](**fields)


def commit(group: str, *topics: str) -> Any:
    cls = classes(ApiKey.OFFSET_COMMIT)[0]
    topic = cls.OffsetCommitRequestTopic
    return cls(
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=[
            topic(
                name=name,
                partitions=[
                    topic.OffsetCommitRequestPartition(
                        partition_index=index, committed_offset=5, committed_metadata="m"
                    )
                    for index in (0, 1)
                ],
            )
            for name in topics
        ],
    )


def fetch(group: str, topics: tuple[str, ...] | None) -> Any:
    cls = classes(ApiKey.OFFSET_FETCH)[0]
    asked = (
        None
        if topics is None
        else [cls.OffsetFetchRequestTopic(name=name, partition_indexes=[0, 1]) for name in topics]
    )
    return cls(group_id=group, topics=asked, require_stable=False)


def fetch_groups(topics: tuple[str, ...] | None) -> Any:
    cls = classes(ApiKey.OFFSET_FETCH)[0]
    kind = cls.OffsetFetchRequestGroup
    return cls(
        groups=[
            kind(
                group_id=group,
                topics=None
                if topics is None
                else [kind.OffsetFetchRequestTopics(name=name, partition_indexes=[0, 1]) for name in topics],
            )
            for group in GROUPS
        ],
        require_stable=True,
    )


def join(group: str) -> Any:
    cls = classes(ApiKey.JOIN_GROUP)[0]
    protocol = cls.JoinGroupRequestProtocol(name="range", metadata=b"x")
    return cls(
        group_id=group,
        session_timeout_ms=6000,
        rebalance_timeout_ms=6000,
        member_id="stranger",
        protocol_type="consumer",
        protocols=[protocol],
    )


def leave(group: str) -> Any:
    cls = classes(ApiKey.LEAVE_GROUP)[0]
    return cls(group_id=group, member_id="stranger", members=[cls.MemberIdentity(member_id="stranger")])


def delete_offsets(group: str) -> Any:
    topic = OffsetDeleteRequest.OffsetDeleteRequestTopic
    return OffsetDeleteRequest(
        group_id=group,
        topics=[
            topic(name=name, partitions=[topic.OffsetDeleteRequestPartition(partition_index=0)])
            for name in TOPICS
        ],
    )


def find(version: int, group: str = NO_GROUP) -> Any:
    return FindCoordinatorRequest(version=version, key=group, key_type=0, coordinator_keys=list(GROUPS))


def topic_ids(whole: Whole) -> list[UUID]:
    """The ids of the topics, and one of none."""
    with RawConnection(whole.cluster.address(1)) as connection:
        answer = connection.call(MetadataRequest(topics=None, allow_auto_topic_creation=False), 12)
    found = {topic.name: topic.topic_id for topic in answer.topics}
    return [found.get(name, UUID(int=77)) for name in TOPICS]


def by_id(group: str, ids: list[UUID]) -> list[tuple[str, Any, int]]:
    """A commit and a fetch that name topics by their ids."""
    commits, fetches = classes(ApiKey.OFFSET_COMMIT)[0], classes(ApiKey.OFFSET_FETCH)[0]
    committed, asked_for = commits.OffsetCommitRequestTopic, fetches.OffsetFetchRequestGroup
    partition = committed.OffsetCommitRequestPartition(partition_index=1, committed_offset=6)
    commit_request = commits(
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=[committed(topic_id=each, partitions=[partition]) for each in ids],
    )
    named = asked_for.OffsetFetchRequestTopics
    fetch_request = fetches(
        groups=[
            asked_for(group_id=group, topics=[named(topic_id=each, partition_indexes=[1]) for each in ids]),
            asked_for(group_id=READS, topics=None),
        ],
        require_stable=False,
    )
    return [("commit by id", commit_request, 10), ("fetch by id", fetch_request, 10)]


def asked(ids: list[UUID]) -> list[tuple[str, Any, int]]:
    """What is asked, in this order, and in which version."""
    everything: list[tuple[str, Any, int]] = []
    for group in GROUPS:
        everything += [("commit", commit(group, *TOPICS), version) for version in (2, 5, 8, 9)]
        everything += [("commit", commit(group, NO_TOPIC, MAY_DESCRIBE), 8)]
        everything += [
            ("fetch", fetch(group, topics), version) for topics in (TOPICS, (), None) for version in (2, 5, 7)
        ]
        everything += [("fetch v1", fetch(group, TOPICS), 1)]
        everything += by_id(group, ids)
        everything += [("join", join(group), version) for version in (0, 4, 9)]
        everything += [
            (
                "sync",
                request_of(ApiKey.SYNC_GROUP, group_id=group, generation_id=1, member_id="m", assignments=[]),
                3,
            ),
            ("heartbeat", request_of(ApiKey.HEARTBEAT, group_id=group, generation_id=1, member_id="m"), 4),
            ("leave", leave(group), 2),
            ("leave", leave(group), 4),
        ]
        everything += [("find", find(version, group), version) for version in (0, 2, 3)]
    everything += [
        ("fetch groups", fetch_groups(topics), version) for topics in (TOPICS, None) for version in (8, 9)
    ]
    everything += [("find", find(version), version) for version in (4, 5, 6)]
    everything += [
        ("describe", DescribeGroupsRequest(groups=list(GROUPS), include_authorized_operations=False), version)
        for version in (0, 3, 5, 6)
    ]
    everything += [
        ("list", ListGroupsRequest(states_filter=[], types_filter=[]), version) for version in (0, 4, 5)
    ]
    everything += [("delete offsets", delete_offsets(group), 0) for group in GROUPS]
    everything += [
        ("delete", DeleteGroupsRequest(groups_names=[*GROUPS, NO_GROUP]), version) for version in (0, 2)
    ]
    everything += [("list", ListGroupsRequest(states_filter=[], types_filter=[]), 4)]
    return everything


def shown(value: Any) -> Any:
    """A response as plain values, but for addresses, which differ, and what has no order."""
    if isinstance(value, list):
        return [shown(each) for each in value]
    if hasattr(value, "to_dict"):
        value = value.to_dict()
    if not isinstance(value, dict):
        return value
    plain = {key: shown(each) for key, each in value.items() if key not in ("throttle_time_ms", "version")}
    if "node_id" in plain and plain["node_id"] >= 0:
        for key in ("node_id", "host", "port"):
            del plain[key]
    for key in ("groups", "topics", "results"):
        if isinstance(plain.get(key), list):
            plain[key].sort(key=str)
    return plain


def answers_of(bootstrap: str, user: str, ids: list[UUID]) -> list[Any]:
    """What this user hears to each request, or that the connection was closed."""
    heard = []
    connection = logged_in(bootstrap, user)
    for _, request, version in asked(ids):
        try:
            heard.append(shown(connection.call(request, version)))
        except ConnectionError:
            heard.append("closed")
            connection.close()
            connection = logged_in(bootstrap, user)
    connection.close()
    return heard


@pytest.mark.parametrize("user", ["admin", "alice", "bob", *BROKEN])
def test_each_principal_hears_what_kafka_says(secured: Whole, user: str) -> None:
    ids = topic_ids(secured)
    theirs = answers_of(secured.cluster.address(1, PROTOCOL), user, ids)
    ours = answers_of(secured.bootstrap, user, ids)
    differing = [
        (name, f"{name} v{version}\n  kafka {kafka}\n  ours  {mine}")
        for (name, _, version), kafka, mine in zip(asked(ids), theirs, ours, strict=True)
        if kafka != mine
    ]
    assert "closed" not in ours, secured.log_text()[-4000:]
    found = {name for name, _ in differing}
    assert found == DIFFERENCES.get(user, set()), "\n".join(shown for _, shown in differing)


@pytest.mark.parametrize(("host", "here"), [("127.0.0.1", True), ("127.0.0.2", False)])
def test_permissions_by_host_see_the_gateways_address(secured: Whole, host: str, here: bool) -> None:
    """A gateway connects from 127.0.0.1, wherever its client comes from."""
    group = f"for-{host}"
    secured.cluster.allow("bob", "READ", "GROUP", group, host=host)
    wait_for_coordinator(secured.cluster.address(1), group)
    request = request_of(ApiKey.HEARTBEAT, group_id=group, generation_id=1, member_id="m")

    def is_allowed(bootstrap: str, source: str) -> bool:
        with logged_in(bootstrap, "bob", source) as connection:
            return bool(connection.call(request, 4).error_code != ErrorCode.GROUP_AUTHORIZATION_FAILED)

    for source in ("127.0.0.1", "127.0.0.2"):
        assert is_allowed(secured.cluster.address(1, PROTOCOL), source) is (source == host)
        assert is_allowed(secured.bootstrap, source) is here
