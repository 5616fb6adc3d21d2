# SPDX-License-Identifier: Apache-2.0
"""Static members (KIP-345): a restart within the session does not concern the others; two cannot be one."""

from tests.clients.group import ALL, Group
from tests.clients.member import Member, MemberOptions
from tests.support import raw
from tests.support.waiting import wait_until

FENCED_INSTANCE_ID = 82


def static(instance_id: str) -> MemberOptions:
    """Options of a static member, with a session that no test waits for."""
    return MemberOptions(instance_id=instance_id)


def settle(group: Group) -> tuple[Member, Member]:
    """Start two static members and wait until they share the partitions."""
    first = group.member("first", static("instance-1"))
    second = group.member("second", static("instance-2"))
    group.wait_shared([first, second])
    return first, second


def test_a_static_member_that_restarts_keeps_its_partitions_without_a_rebalance(group: Group) -> None:
    """One of the two is the leader, so both ways are tried: killed, and closed (which does not leave)."""
    first, second = settle(group)
    first_id = group.member_ids()["instance-1"]
    generation = group.generation(first_id, "instance-1")
    told_before = len(first.events)

    second.kill9()
    second_again = group.member("second-again", static("instance-2"))
    wait_until(
        lambda: second_again.assignment == second.assignment,
        what=lambda: f"the restarted member to get its partitions back:\n{group.diagnosis()}",
    )
    assert group.generation(first_id, "instance-1") == generation
    assert first.events[told_before:] == []

    second_id = group.member_ids()["instance-2"]
    told_before = len(second_again.events)
    first.leave()
    first_again = group.member("first-again", static("instance-1"))
    held = ALL - second.assignment
    wait_until(
        lambda: first_again.assignment == held,
        what=lambda: f"the reopened member to get its partitions back:\n{group.diagnosis()}",
    )
    assert group.generation(second_id, "instance-2") == generation
    assert second_again.events[told_before:] == []
    for member in (first_again, second_again):
        member.commit(dict.fromkeys(member.assignment, 9))
    assert first_again.committed(ALL) == dict.fromkeys(ALL, 9)


def test_a_second_member_with_the_same_instance_id_fences_the_first(group: Group) -> None:
    """The first is frozen meanwhile: the zombie that fencing is for."""
    first, second = settle(group)
    held = first.assignment
    first_id = group.member_ids()["instance-1"]
    generation = group.generation(first_id, "instance-1")
    first.freeze()

    usurper = group.member("usurper", static("instance-1"))
    wait_until(
        lambda: usurper.assignment == held,
        what=lambda: f"the second one to take the partitions over:\n{group.diagnosis()}",
    )
    usurper.commit(dict.fromkeys(held, 5))

    now = group.member_ids()
    assert set(now) == {"instance-1", "instance-2"}
    assert now["instance-1"] != first_id
    code = raw.heartbeat(group.bootstrap, group.id, generation, first_id, "instance-1")
    assert code == FENCED_INSTANCE_ID
    if group.client.tells_when_fenced:
        first.thaw()
        # Java refuses the commit with another exception where a heartbeat was fenced before it.
        assert first.try_commit({min(held): 4}) in ("fenced", "refused"), group.diagnosis()
        wait_until(lambda: first.told("fenced"), what=lambda: f"it to be told:\n{group.diagnosis()}")
        assert usurper.committed(held) == dict.fromkeys(held, 5)
    assert second.told("lost") == []
