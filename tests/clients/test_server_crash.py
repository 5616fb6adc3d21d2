# SPDX-License-Identifier: Apache-2.0
"""Members ride through a crash of their coordinator: no rebalance, no offset lost."""

from collections.abc import Callable

from tests.clients.group import ALL, Group
from tests.support import raw
from tests.support.target import Target


def test_members_go_on_in_their_generation_after_the_coordinator_was_killed(
    group_on: Callable[[str], Group], own_target: Target
) -> None:
    """The group's members are in the log as well as its offsets: nobody has to join again."""
    group = group_on(own_target.bootstrap)
    first, second = group.member("first"), group.member("second")
    group.wait_shared([first, second])
    assignments = [len(member.told("assigned")) for member in (first, second)]
    ids = group.member_ids()
    generation = group.generation(ids["first"])
    for member in (first, second):
        member.commit(dict.fromkeys(member.assignment, 100))

    own_target.kill9()
    own_target.restart()
    raw.wait_for_coordinator(own_target.bootstrap, group.id)

    assert first.committed(ALL) == dict.fromkeys(ALL, 100)
    for member in (first, second):
        member.commit(dict.fromkeys(member.assignment, 200))
    assert second.committed(ALL) == dict.fromkeys(ALL, 200)
    assert group.member_ids() == ids
    assert group.generation(ids["first"]) == generation
    assert [len(member.told("assigned")) for member in (first, second)] == assignments
