# SPDX-License-Identifier: Apache-2.0
"""Members ride through the end of their coordinator: no rebalance, no offset lost."""

import pytest

from tests.clients.group import ALL, Groups
from tests.support import raw
from tests.support.target import Target


@pytest.mark.gate
def test_members_go_on_in_their_generation_when_the_coordinator_comes_back(
    groups: Groups, own_target: Target
) -> None:
    """After a crash, and after a stop in good order while they are connected.

    The group's members are in the log as its offsets are, so nobody has to join again.
    """
    group = groups.make(own_target.bootstrap)
    members = [group.member("first"), group.member("second")]
    first, second = members
    group.wait_shared(members)
    assignments = [len(member.told("assigned")) for member in members]
    ids = group.member_ids()
    generation = group.generation(ids["first"])

    for offset, stop in ((100, own_target.kill9), (200, own_target.terminate)):
        for member in members:
            member.commit(dict.fromkeys(member.assignment, offset))
        stop()
        own_target.start()
        raw.wait_for_coordinator(own_target.bootstrap, group.id)
        assert first.committed(ALL) == dict.fromkeys(ALL, offset)

    for member in members:
        member.commit(dict.fromkeys(member.assignment, 300))
    assert second.committed(ALL) == dict.fromkeys(ALL, 300)
    assert group.member_ids() == ids
    assert group.generation(ids["first"]) == generation
    assert [len(member.told("assigned")) for member in members] == assignments
