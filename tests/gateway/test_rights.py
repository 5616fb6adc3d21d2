# SPDX-License-Identifier: Apache-2.0
"""Requests of many kinds by users with all sets of permissions: a gateway answers what Kafka answers, field by field.

Kafka's answers are recorded in matrix/recording.txt, and matrix/differences.py lists the cases that differ.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from kafka.protocol.admin.groups import DeleteGroupsRequest, DescribeGroupsRequest
from kafka.protocol.consumer.group import HeartbeatRequest

from coordinator.gateway.permission_gate import ABOUT_ABSENT, OF_MEMBERS
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from tests.gateway.matrix.differences import DIFFERENCES, Difference, differing
from tests.gateway.matrix.permission_sets import permission_sets
from tests.gateway.matrix.play import CLOSED, logged_in, play, topic_ids
from tests.gateway.matrix.recording import Recording, load
from tests.gateway.matrix.requests import absent_ids, kinds
from tests.gateway.matrix.secured import PROTOCOL, secured_cluster
from tests.gateway.test_before_login import ASKED as BEFORE_LOGIN
from tests.gateway.test_before_login import VERSIONS
from tests.gateway.whole import Whole
from tests.kafka.cluster import USERS, KafkaCluster
from tests.support.raw import RawConnection, offset_delete, wait_for_coordinator

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.slow,
    pytest.mark.timeout(600),
]  # the first test sends all requests

KINDS: Final = [kind.name for kind in kinds(absent_ids())]
SETS: Final = permission_sets()
NOT_ADOPTING: Final = ABOUT_ABSENT | OF_MEMBERS
"""Apis by whose requests no group moves."""


@contextmanager
def in_front_of(cluster: KafkaCluster, work: Path, user: str, **settings: str) -> Iterator[Whole]:
    """A running gateway that is itself this user of the cluster."""
    password = work / "password"
    password.write_text(USERS.get(user, user))
    ours: dict[str, str | int] = {
        "upstream.security.protocol": PROTOCOL,
        "upstream.sasl.mechanism": "PLAIN",
        "upstream.sasl.username": user,
        "upstream.sasl.password.file": str(password),
        **{name.replace("_", "."): value for name, value in settings.items()},
    }
    running = Whole(work / "node", cluster, ours, PROTOCOL)
    try:
        running.start()
        yield running
    finally:
        running.close()


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Whole]:
    """A broker where rights are asked for, behind a gateway, with a user for each set of permissions."""
    work = tmp_path_factory.mktemp("secured")
    # What the groups are at the cluster is what ours are compared with.
    with (
        secured_cluster(work / "kafka", SETS) as cluster,
        in_front_of(cluster, work, "admin", gateway_adopt="off") as running,
    ):
        yield running


@pytest.fixture(scope="module")
def looking(secured: Whole, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Whole]:
    """A second gateway to that broker, for which all groups are at the cluster."""
    with in_front_of(secured.cluster, tmp_path_factory.mktemp("looking"), "admin") as running:
        yield running


@pytest.fixture(scope="module")
def of_groups_at_the_cluster(looking: Whole, at_kafka: Recording) -> Recording:
    """The answers about groups that are not at the gateway; Kafka itself has been asked before."""
    broker = looking.cluster.address(1, PROTOCOL)
    ids = topic_ids(looking.cluster.address(1))
    return play(looking.bootstrap, SETS, ids, NOT_ADOPTING, commits_at=broker)


@pytest.fixture(scope="module")
def recorded() -> Recording:
    """Kafka's answers, as they are checked in."""
    return load()


@pytest.fixture(scope="module")
def at_kafka(secured: Whole) -> Recording:
    """Kafka's answers now."""
    return play(secured.cluster.address(1, PROTOCOL), SETS, topic_ids(secured.cluster.address(1)))


@pytest.fixture(scope="module")
def through_the_gateway(secured: Whole) -> Recording:
    """The answers that clients of the gateway get."""
    return play(secured.bootstrap, SETS, topic_ids(secured.cluster.address(1)))


def hears_nothing(bootstrap: str, request: Any, version: int) -> bool:
    """Whether a connection on which nobody has logged in is closed by this request, without an answer."""
    with RawConnection(bootstrap) as connection:
        connection.send(request, version)
        try:
            connection.receive()
        except ConnectionError:
            return True
        return False


def test_before_a_login_every_request_closes_the_connection_as_at_kafka(secured: Whole) -> None:
    requests = [
        (asked.message(), asked.version) for kind in kinds(absent_ids()) for asked in kind.requests[:1]
    ]
    requests += [(asked, VERSIONS[ApiKey(asked.API_KEY)]) for _, asked in BEFORE_LOGIN]
    broker_port = f"127.0.0.1:{secured.broker_port(1)}"
    for address in (secured.cluster.address(1, PROTOCOL), secured.bootstrap, broker_port):
        answered = [request for request, version in requests if not hears_nothing(address, request, version)]
        assert not answered, address


def test_the_recording_has_every_case(recorded: Recording) -> None:
    asked = {kind.name: tuple(each.name for each in kind.requests) for kind in kinds(absent_ids())}
    assert {kind: part.requests for kind, part in recorded.items()} == asked
    users = [each.user for each in SETS]
    assert {kind: list(part.cases) for kind, part in recorded.items()} == dict.fromkeys(asked, users)


def test_no_recorded_answer_is_due_to_the_moment(recorded: Recording) -> None:
    answers = {each for part in recorded.values() for answers in part.cases.values() for each in answers}
    passing = ("REQUEST_TIMED_OUT", "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", CLOSED)
    assert [each for each in answers if any(error in each for error in passing)] == []


@pytest.mark.parametrize("kind", KINDS)
def test_kafka_answers_as_recorded(kind: str, recorded: Recording, at_kafka: Recording) -> None:
    """Run `python -m tests.gateway.matrix.record` if it does not."""
    assert at_kafka[kind] == recorded[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_a_gateway_answers_every_user_as_kafka_does(
    kind: str, recorded: Recording, through_the_gateway: Recording, secured: Whole
) -> None:
    found = differing(kind, recorded[kind], through_the_gateway[kind])
    unexplained = [case for case in found if not any(each.explains(case) for each in DIFFERENCES)]
    assert unexplained == [], "\n".join([*map(str, unexplained), secured.log_text()[-2000:]])


@pytest.mark.parametrize(
    "kind", [each.name for each in kinds(absent_ids()) if each.requests[0].api in NOT_ADOPTING]
)
def test_a_gateway_answers_every_user_for_the_cluster_as_kafka_does(
    kind: str, recorded: Recording, of_groups_at_the_cluster: Recording, looking: Whole
) -> None:
    found = differing(kind, recorded[kind], of_groups_at_the_cluster[kind])
    unexplained = [case for case in found if not any(each.explains(case) for each in DIFFERENCES)]
    assert unexplained == [], "\n".join([*map(str, unexplained), looking.log_text()[-2000:]])
    assert "a group was taken over" not in looking.log_text()


@pytest.mark.parametrize("difference", DIFFERENCES, ids=lambda each: each.kinds[0])
def test_a_documented_difference_is_still_one(
    difference: Difference, recorded: Recording, through_the_gateway: Recording
) -> None:
    found = {kind: differing(kind, recorded[kind], through_the_gateway[kind]) for kind in difference.kinds}
    assert [kind for kind, cases in found.items() if not cases] == []
    users = {case.user for cases in found.values() for case in cases}
    assert not difference.users or users == {*difference.users}


def test_the_client_gets_the_clusters_error_where_the_gateways_user_lacks_a_permission(
    secured: Whole, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Here that user may see topics, and is not allowed to know anything of groups."""
    secured.cluster.allow("alice", "DESCRIBE", "TOPIC", "t-one")
    secured.cluster.allow("alice", "DESCRIBE", "GROUP", "g-two")
    denied = int(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    describe = DescribeGroupsRequest(groups=["g-one"], include_authorized_operations=True)
    delete = DeleteGroupsRequest(groups_names=["g-two"])
    offsets = offset_delete("g-two", "t-one", [0])
    work = tmp_path_factory.mktemp("lacks")  # short, as the paths of sockets have to be
    with in_front_of(secured.cluster, work, "alice") as running:
        with logged_in(running.bootstrap, "admin") as connection:
            assert [each.error_code for each in connection.call(describe, 5).groups] == [denied]
            assert [each.error_code for each in connection.call(delete, 2).results] == [denied]
            assert connection.call(offsets, 0).error_code == denied
        log = running.log_text()
    for operation, group in (("DESCRIBE", "g-one"), ("DELETE", "g-two")):
        assert f'"operation":"{operation}","resource":"group","name":"{group}"' in log


@pytest.mark.parametrize(("host", "here"), [("127.0.0.1", True), ("127.0.0.2", False)])
def test_permissions_by_host_see_the_gateways_address(secured: Whole, host: str, here: bool) -> None:
    """A gateway connects from 127.0.0.1, wherever its client comes from."""
    group = f"for-{host}"
    secured.cluster.allow("bob", "READ", "GROUP", group, host=host)
    wait_for_coordinator(secured.cluster.address(1), group)
    request = HeartbeatRequest(group_id=group, generation_id=1, member_id="m")

    def is_allowed(bootstrap: str, source: str) -> bool:
        with logged_in(bootstrap, "bob", source) as connection:
            return bool(connection.call(request, 4).error_code != ErrorCode.GROUP_AUTHORIZATION_FAILED)

    for source in ("127.0.0.1", "127.0.0.2"):
        assert is_allowed(secured.cluster.address(1, PROTOCOL), source) is (source == host)
        assert is_allowed(secured.bootstrap, source) is here
