# SPDX-License-Identifier: Apache-2.0
"""What the log says at info of a group's life."""

from tests.groups.harness import Cluster
from tests.support.log_lines import LogLines, captured


def at_info(lines: LogLines) -> list[str]:
    return [event for level, event, _ in lines.lines if level == "info"]


def test_a_group_that_forms_changes_and_ends_can_be_followed() -> None:
    with captured() as lines:
        cluster = Cluster()
        first, second = cluster.stable_group(2)
        cluster.leave(second)
        cluster.join(first)
        cluster.sync(first, cluster.group().generation_id, {})
        cluster.advance(11_000)
    assert at_info(lines) == [
        "member joined",
        "member joined",
        "stabilized group",
        "member left",
        "stabilized group",
        "member's session has expired",
        "preparing to rebalance",
        "group is now empty",
    ]
    joined = lines.fields("member joined")[0]
    assert joined == {
        "group": "g",
        "member": joined["member"],
        "client": "client",
        "host": "/127.0.0.1",
        "members": 1,
    }
    assert lines.fields("stabilized group")[0]["members"] == 2


def test_heartbeats_commits_and_rejoins_have_no_lines() -> None:
    cluster = Cluster()
    (member,) = cluster.stable_group(1)
    with captured() as lines:
        for offset in range(3):
            cluster.heartbeat(member, 1)
            cluster.commit(offset, member_id=member, generation=1)
    assert not lines.lines


def test_members_that_do_not_rejoin_are_named() -> None:
    cluster = Cluster()
    first, second = cluster.stable_group(2, session_ms=600_000)
    with captured() as lines:
        cluster.member(session_ms=600_000)
        cluster.join(first)
        cluster.advance(30_000)
    assert lines.fields("removed members that did not rejoin") == [{"group": "g", "members": [second]}]
    assert "removed members that did not rejoin" in at_info(lines)
