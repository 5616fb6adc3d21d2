# SPDX-License-Identifier: Apache-2.0
"""Brokers that go, come back, hand over and are replaced, and members that come and go: clients of all kinds go on."""

from collections.abc import Iterator

import pytest
from confluent_kafka import ElectionType, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.gateway.applications import LIBRARIES, STEADY, Applications
from tests.gateway.whole import Whole
from tests.kafka.cluster import KafkaCluster
from tests.support.raw import describe_group, fetch_offsets
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(600)]

KILLED = 1
REPLACED, NEW = 3, 4


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Whole]:
    """Three brokers behind a gateway."""
    work = tmp_path_factory.mktemp("three")
    cluster = KafkaCluster(work / "kafka", 3)
    running = Whole(work / "node", cluster)
    try:
        cluster.start()
        running.start()
        yield running
    finally:
        running.close()
        cluster.close()


@pytest.fixture(scope="module")
def survivors(three: Whole, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Applications]:
    """All clients have gone through all of it side by side, and have ended."""
    applications = Applications(three, tmp_path_factory.mktemp("applications"), "survives", STEADY)
    try:
        applications.all_read_on("the first records")
        share_with_a_second_member(three, applications)
        lose_a_broker(three, applications)
        move_leaders(three, applications)
        replace_a_broker(three, applications)
        applications.read_all_and_end()
        yield applications
    finally:
        applications.close()


def share_with_a_second_member(three: Whole, applications: Applications) -> None:
    """Two members in each group, then one again."""

    def shared(library: str) -> bool:
        return members(three, applications.topics[library]) == 2 and bool(applications.second[library].values)

    applications.start_second()
    applications.all_reach("a share for the second member", shared)
    applications.end_second()
    applications.all_reach(
        "having all again", lambda library: members(three, applications.topics[library]) == 1
    )
    applications.all_read_on("records of all partitions again")


def lose_a_broker(three: Whole, applications: Applications) -> None:
    """A broker that leads is killed; the others take over; later it comes back."""
    assert KILLED in leaders(three, applications)
    three.cluster.kill9(KILLED)
    applications.all_read_on("records without a broker", 25)
    wait_until(lambda: KILLED not in leaders(three, applications), what="other leaders")
    # It is in no metadata any more, and is shown all the same.
    wait_until(lambda: three.ready()["upstream"]["brokers"][str(KILLED)]["error"], what="its error")
    three.cluster.restart(KILLED)
    applications.all_read_on("records with the broker back")


def move_leaders(three: Whole, applications: Applications) -> None:
    """Brokers that stay hand over to another."""
    three.cluster.wait_until_in_sync()
    elect_preferred(three, applications, KILLED)
    applications.all_read_on("records of leaders that have moved", 25)


def replace_a_broker(three: Whole, applications: Applications) -> None:
    """A broker goes for good, and one with another id, at another address, has its copies and leads."""
    three.cluster.replace(REPLACED, NEW)
    three.cluster.wait_until_in_sync()
    elect_preferred(three, applications, NEW)
    port = three.broker_port(NEW)
    applications.all_reach("the new broker", lambda library: port in applications.first[library].seen_ports)
    applications.all_read_on("records of the new broker", 25)


def members(whole: Whole, group: str) -> int:
    """How many members a group has, while it is stable."""
    described = describe_group(whole.bootstrap, group)
    return len(described.members) if described.group_state == "Stable" else 0


def leaders(whole: Whole, applications: Applications) -> set[int]:
    """Who leads anything of the applications' topics."""
    topics = whole.cluster.metadata().topics
    return {
        part.leader for topic in applications.topics.values() for part in topics[topic].partitions.values()
    }


def elect_preferred(whole: Whole, applications: Applications, wanted: int) -> None:
    """Have the first copy of each partition lead, which makes `wanted` lead some that it does not lead now."""
    assert wanted not in leaders(whole, applications)
    partitions = [TopicPartition(topic, each) for topic in applications.topics.values() for each in range(3)]
    whole.cluster.admin().elect_leaders(ElectionType.PREFERRED, partitions).result(120)
    wait_until(lambda: wanted in leaders(whole, applications), what=f"broker {wanted} to lead")


@pytest.mark.parametrize("library", LIBRARIES)
def test_each_record_is_read_once_whatever_happens_to_brokers_and_members(
    survivors: Applications, library: str
) -> None:
    application = survivors.require(library)
    assert application.produced is not None
    assert sorted(survivors.values(library)) == list(range(application.produced))
    assert survivors.second[library].values, "a share of it went to the second member"


@pytest.mark.parametrize("library", LIBRARIES)
def test_committed_offsets_are_where_the_reading_has_come(
    survivors: Applications, three: Whole, library: str
) -> None:
    application = survivors.require(library)
    assert sum(fetch_offsets(three.bootstrap, application.topic).values()) == application.produced


@pytest.mark.parametrize("library", LIBRARIES)
def test_clients_reach_brokers_through_the_gateway_alone_a_new_one_too(
    survivors: Applications, three: Whole, library: str
) -> None:
    application = survivors.require(library)  # it has looked all the time for the brokers' own ports
    through_us = {three.broker_port(each) for each in (KILLED, 2, REPLACED, NEW)} | {three.port}
    assert application.seen_ports <= through_us, "nothing else is there to connect to"
    assert application.seen_ports >= {three.broker_port(NEW), three.port}


def test_a_broker_that_replaces_another_is_found_through_its_own_port(
    survivors: Applications, three: Whole
) -> None:
    assert set(three.cluster.brokers) == {KILLED, 2, NEW}
    port = three.broker_port(NEW)
    # A client need not have asked it, where others lead: so one asks it alone.
    admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}"})
    assert admin.list_topics(timeout=120).brokers[NEW].port == port
