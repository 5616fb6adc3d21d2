# SPDX-License-Identifier: Apache-2.0
"""Dynamic members: sharing, committing, leaving, coming back, and taking over from the dead."""

import pytest

from tests.clients.group import ALL, Group, Groups
from tests.clients.member import CLIENTS, MemberOptions
from tests.support import raw
from tests.support.target import Target

UNKNOWN_MEMBER_ID = 25


def test_survivors_share_what_a_killed_member_held_and_read_its_offsets(group: Group) -> None:
    """Three members share 12 partitions; one dies without a word; two share them after its session timeout."""
    options = MemberOptions(session_timeout_ms=6_000)
    first, second, third = members = [group.member(name, options) for name in ("first", "second", "third")]
    group.wait_shared(members)
    expected = {partition: 1_000 + partition for partition in ALL}
    for member in members:
        member.commit({partition: expected[partition] for partition in member.assignment})
    third_id = group.member_ids()["third"]
    generation = group.generation(third_id)

    third.kill9()
    group.wait_shared([first, second])

    # What the dead one still had on its way may not undo the work of those who took over.
    late = raw.standalone_commit(group.id, group.topic, {min(third.assignment): 1})
    late.member_id, late.generation_id_or_member_epoch = third_id, generation
    with raw.RawConnection(group.bootstrap) as connection:
        answer = connection.call(late, 8)
    assert [part.error_code for part in answer.topics[0].partitions] == [UNKNOWN_MEMBER_ID]
    assert first.committed(ALL) == expected
    assert second.committed(ALL) == expected


@pytest.mark.gate
def test_offsets_are_read_back_by_whoever_comes_after_all_have_left(group: Group) -> None:
    """Leaving hands partitions over at once: the session timeout of a minute would be too long to wait for."""
    first, second, third = (group.member(name) for name in ("first", "second", "third"))
    group.wait_shared([first, second, third])
    expected = {partition: 10 * partition for partition in ALL}
    for member in (first, second, third):
        member.commit({partition: expected[partition] for partition in member.assignment})
    third.leave()
    group.wait_shared([first, second])
    second.leave()
    first.leave()
    described = raw.describe_group(group.bootstrap, group.id)
    assert (described.group_state, len(described.members)) == ("Empty", 0)

    again = group.member("again")
    group.wait_shared([again])

    assert again.committed(ALL) == expected
    again.commit({0: 77})
    expected[0] = 77
    assert again.committed(ALL) == expected
    assert raw.fetch_offsets(group.bootstrap, group.id) == {
        (group.topic, partition): offset for partition, offset in expected.items()
    }


@pytest.mark.parametrize(
    "client", [each for each in CLIENTS if each.cooperative], ids=lambda each: str(each.name)
)
def test_cooperative_members_keep_what_they_need_not_give_up(group: Group) -> None:
    """KIP-429: a rebalance takes from a member only what moves to another one."""
    options = MemberOptions(assignor="cooperative-sticky")
    first = group.member("first", options)
    group.wait_shared([first])

    second = group.member("second", options)
    group.wait_shared([first, second])
    given_up = [set(event["partitions"]) for event in first.told("revoked") if event["partitions"]]
    assert given_up == [second.assignment], f"{first} gave up {given_up}, {second}"
    assert raw.describe_group(group.bootstrap, group.id).protocol_data == "cooperative-sticky"

    kept = first.assignment
    second.leave()
    group.wait_shared([first])
    taken = [set(event["partitions"]) for event in first.told("assigned") if event["partitions"]]
    assert taken == [ALL, ALL - kept], f"{first} was given {taken}"
    assert not first.told("lost")


@pytest.mark.parametrize(
    "client", [each for each in CLIENTS if each.creates_topics], ids=lambda each: str(each.name)
)
def test_subscribing_to_a_topic_that_is_not_there_creates_it(groups: Groups, target: Target) -> None:
    """auto.create.topics.enable is on, as it is in Kafka, and gives num.partitions partitions."""
    group = groups.make(target.bootstrap, create_topic=False)
    member = group.member("only")
    group.wait_shared([member])
    member.commit({11: 1})
    assert member.committed(ALL) == {11: 1}
