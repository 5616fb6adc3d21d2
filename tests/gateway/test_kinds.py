# SPDX-License-Identifier: Apache-2.0
"""Groups of all kinds that live at a real broker: a gateway leaves them there, and answers as the broker does."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import confluent_kafka as ck
import pytest
from kafka.protocol.admin.groups import DeleteGroupsRequest, ListGroupsRequest
from kafka.protocol.consumer.group import JoinGroupRequest

from protocol.errors import ErrorCode
from tests.gateway.whole import Whole
from tests.kafka.cluster import KafkaCluster
from tests.support.newer_groups import LONG_SESSIONS, member_of
from tests.support.raw import RawConnection, create_topic, fetch_offsets, find_coordinator, standalone_commit
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(300)]

TOPIC: Final = "t"
LOADING: Final = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
INCONSISTENT: Final = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
WITH_OFFSETS: Final = ("classic", "consumer", "streams")
BEGINS: Final = ErrorCode.MEMBER_ID_REQUIRED
"""What the first JoinGroup of a new member gets where it may join."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Whole]:
    """One broker behind `groupkeeper serve`; each test has groups of its own."""
    work = tmp_path_factory.mktemp("kinds")
    cluster = KafkaCluster(work / "kafka", settings=LONG_SESSIONS)
    running = Whole(work / "node", cluster)
    try:
        cluster.start()
        create_topic(cluster.address(1), TOPIC, 2)
        running.start()
        running.commits_soon("probe", TOPIC, {0: 0, 1: 0})
        yield running
    finally:
        running.close()
        cluster.close()


@contextmanager
def member(cluster: KafkaCluster, kind: str, group: str) -> Iterator[None]:
    """A member of a group of this kind, at the broker itself."""
    if kind in {"streams", "share"}:
        with member_of(kind, cluster.address(1), group, TOPIC):
            yield
        return
    consumer = ck.Consumer(
        {
            **cluster.client_settings(),
            "group.id": group,
            "group.protocol": kind,
            "enable.auto.commit": False,
        }
    )
    try:
        consumer.subscribe([TOPIC])
        wait_until(lambda: consumer.poll(0.2) or consumer.assignment(), what=f"a member of {group}")
        yield
    finally:
        consumer.close()


def coordinator(bootstrap: str, group: str) -> str:
    found = find_coordinator(bootstrap, group)
    return f"{found.host}:{found.port}"


def join(bootstrap: str, group: str) -> ErrorCode:
    """What the first JoinGroup of a new member gets."""
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"")
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id="",
        group_instance_id=None,
        protocol_type="consumer",
        protocols=[protocol],
        reason=None,
    )
    with RawConnection(coordinator(bootstrap, group)) as connection:
        return ErrorCode(connection.call(request, 9).error_code)


def commit(bootstrap: str, group: str, offset: int, partition: int = 0) -> ErrorCode:
    """What a commit without a generation gets."""
    with RawConnection(coordinator(bootstrap, group)) as connection:
        answer = connection.call(standalone_commit(group, TOPIC, {partition: offset}), 8)
    return ErrorCode(answer.topics[0].partitions[0].error_code)


def at_the_cluster(whole: Whole, group: str) -> tuple[str, str, dict[tuple[str, int], int]]:
    """The group's kind, its state and its offsets there."""
    with RawConnection(whole.cluster.address(1)) as connection:
        listed = connection.call(ListGroupsRequest(states_filter=[], types_filter=[]), 5).groups
    (found,) = [each for each in listed if each.group_id == group]
    return found.group_type, found.group_state, fetch_offsets(whole.cluster.address(1), group)


def is_taken_over(whole: Whole, group: str) -> bool:
    """Whether the gateway has taken it over at any time."""
    return any(
        '"event":"a group was taken over"' in line and f'"group":"{group}"' in line
        for line in whole.log_text().splitlines()
    )


@pytest.mark.parametrize(
    ("kind", "join_error"),
    [("classic", LOADING), ("consumer", LOADING), ("streams", INCONSISTENT), ("share", INCONSISTENT)],
)
def test_a_group_that_lives_at_the_broker_stays_there(whole: Whole, kind: str, join_error: ErrorCode) -> None:
    broker, group = whole.cluster.address(1), f"live-{kind}"
    if kind != "share":
        assert commit(broker, group, 5) is ErrorCode.NONE
    with member(whole.cluster, kind, group):
        before = at_the_cluster(whole, group)
        assert before[0] == kind
        assert join(whole.bootstrap, group) is join_error
        if join_error is INCONSISTENT:  # else it would join beside the member
            assert join(broker, group) is join_error
        refused = commit(broker, group, 7)
        assert refused is not ErrorCode.NONE
        assert commit(whole.bootstrap, group, 7) is refused
        assert at_the_cluster(whole, group) == before
    assert not is_taken_over(whole, group)


@pytest.mark.parametrize("kind", WITH_OFFSETS)
def test_what_was_committed_at_the_cluster_after_a_refusal_is_taken_over_with_the_group(
    whole: Whole, kind: str
) -> None:
    broker, group = whole.cluster.address(1), f"moves-{kind}"
    assert commit(broker, group, 5) is ErrorCode.NONE
    with member(whole.cluster, kind, group):
        assert commit(whole.bootstrap, group, 7) is ErrorCode.UNKNOWN_MEMBER_ID
    wait_until(lambda: commit(broker, group, 8) is ErrorCode.NONE, what="an empty group")
    assert at_the_cluster(whole, group) == (kind, "Empty", {(TOPIC, 0): 8})
    wait_until(lambda: join(whole.bootstrap, group) is BEGINS, what="the group to be taken over")
    wait_until(lambda: is_taken_over(whole, group), what="the log to say so")
    assert fetch_offsets(whole.bootstrap, group) == {(TOPIC, 0): 8}
    assert join(broker, group) is BEGINS, "as there"


def test_a_share_group_stays_without_members_too_until_it_is_deleted(whole: Whole) -> None:
    broker, group = whole.cluster.address(1), "empty-share"
    with member(whole.cluster, "share", group):
        pass
    assert at_the_cluster(whole, group) == ("share", "Empty", {})
    for bootstrap in (broker, whole.bootstrap):
        assert join(bootstrap, group) is INCONSISTENT
        assert commit(bootstrap, group, 7) is ErrorCode.GROUP_ID_NOT_FOUND
    with RawConnection(broker) as connection:
        (deleted,) = connection.call(DeleteGroupsRequest(groups_names=[group]), 2).results
    assert deleted.error_code == ErrorCode.NONE
    wait_until(lambda: join(whole.bootstrap, group) is BEGINS, what="a group of its id")
