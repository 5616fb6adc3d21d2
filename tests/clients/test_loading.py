# SPDX-License-Identifier: Apache-2.0
"""What members hear while their group's partition is still being read from the log."""

import itertools
import uuid

from kafka.protocol.consumer.group import HeartbeatRequest, OffsetFetchRequest

from tests.support import raw
from tests.support.target import Target
from tests.support.waiting import wait_until

COMMITS = 5_000
COORDINATOR_LOAD_IN_PROGRESS = 14
UNKNOWN_MEMBER_ID = 25


def test_heartbeats_are_answered_blindly_while_the_group_loads(own_target: Target) -> None:
    """As Kafka does (GroupCoordinatorService.heartbeat): aiokafka gives up on any other answer but a known refusal."""
    group = f"group-{uuid.uuid4().hex[:12]}"
    raw.create_topic(own_target.bootstrap, "topic")
    raw.wait_for_coordinator(own_target.bootstrap, group)
    write_much(own_target.bootstrap, group)
    own_target.kill9()
    own_target.launch()
    connection = wait_until(lambda: connect(own_target.bootstrap), what="the port", interval_s=0.001)
    answers: list[tuple[int, int]] = []
    with connection:
        while not answers or answers[-1][0] != raw.NONE:
            answers.append(fetch_and_heartbeat(connection, group))

    # A heartbeat between two fetches that were told of loading came while it went on.
    codes = {
        beat
        for (before, beat), (after, _) in itertools.pairwise(answers)
        if before == after == COORDINATOR_LOAD_IN_PROGRESS
    }
    assert codes == {raw.NONE}, f"while loading: {codes}; fetch and heartbeat: {answers[-5:]}"
    assert answers[-1][1] == UNKNOWN_MEMBER_ID


def write_much(bootstrap: str, group: str) -> None:
    """Commit so often that reading it all back takes a while."""
    with raw.RawConnection(bootstrap) as connection:
        for number in range(COMMITS):
            connection.send(raw.standalone_commit(group, "topic", dict.fromkeys(range(12), number)), 8)
            if number % 50 == 49:
                for _ in range(50):
                    connection.receive()


def connect(bootstrap: str) -> raw.RawConnection | None:
    """Return a connection, None while nothing listens."""
    try:
        return raw.RawConnection(bootstrap)
    except ConnectionError:
        return None


def fetch_and_heartbeat(connection: raw.RawConnection, group: str) -> tuple[int, int]:
    """Return the error codes of one fetch of the group and of one heartbeat of a member that it has not."""
    fetch = OffsetFetchRequest(group_id=group, topics=None, require_stable=True)
    beat = HeartbeatRequest(group_id=group, generation_id=1, member_id="nobody", group_instance_id=None)
    return connection.call(fetch, 7).error_code, connection.call(beat, 3).error_code
