# SPDX-License-Identifier: Apache-2.0
"""LeaveGroup: one member and several, by id and by instance id, in every state."""

from typing import Any

from protocol.apis import ApiKey
from tests.kafka.differential.catalogue import every, scenario
from tests.kafka.differential.groups import (
    COMPLETING,
    EMPTY,
    IN_STATE,
    PREPARING,
    STABLE,
    first_join,
    preparing_group,
    stable_group,
)
from tests.kafka.differential.scenarios.join_group import State, states
from tests.kafka.differential.script import Script

LEAVE = ApiKey.LEAVE_GROUP


def leaving(member_id: str = "", instance_id: str | None = None, **more: Any) -> dict[str, Any]:
    """A member of a batch."""
    return {"member_id": member_id, "group_instance_id": instance_id, **more}


@scenario(version=every(LEAVE, until=2))
def one_member(s: Script, version: int) -> None:
    group = stable_group(s)
    c = group.outsider
    c.leave(version, group_id="")
    c.leave(version, group_id=s.id("none"), member_id="nobody")
    c.leave(version)
    c.leave(version, member_id="nobody")
    c.leave(version, member_id=group.follower.id)
    c.leave(version, member_id=group.follower.id)
    group.leader.heartbeat()
    c.leave(version, member_id=group.leader.id)
    c.describe()
    c.leave(version, member_id=group.leader.id)


@scenario(version=every(LEAVE, since=3))
def several_members(s: Script, version: int) -> None:
    group = stable_group(s, size=4, instances=[None, None, "i", "j"])
    c = group.outsider
    one, two, three, _ = group.members
    c.leave(version, group_id="", members=[leaving(one.id)])
    c.leave(version, group_id="")
    c.leave(version, group_id=s.id("none"), members=[leaving("nobody"), leaving("", "i")])
    c.leave(version, group_id=s.id("none"), members=[])
    c.leave(version, members=[])
    c.leave(version, members=[leaving("nobody"), leaving(two.id), leaving(two.id), leaving("", "j")])
    one.heartbeat()
    c.leave(version, members=[leaving(one.id), leaving(three.id, "i")])
    c.describe()


@scenario(version=every(LEAVE, until=2))
def a_static_member_by_its_id_alone(s: Script, version: int) -> None:
    group = stable_group(s, instances=[None, "i"])
    group.outsider.leave(version, member_id=group.follower.id)
    group.outsider.describe()


@scenario(reason={"null": None, "empty": "", "text": "because", "long": "x" * 300})
def a_reason(s: Script, reason: str | None) -> None:
    group = stable_group(s)
    group.outsider.leave(
        members=[leaving(group.follower.id, reason=reason), leaving("nobody", reason=reason)]
    )


@scenario(state=IN_STATE)
def ids_that_do_not_fit(s: Script, state: State) -> None:
    group = state(s, instances=["i", None])
    c = group.outsider
    for member_id in ("", "nobody", group.follower.id):
        for instance_id in ("", "j"):
            c.leave(members=[leaving(member_id, instance_id)])
    c.leave(members=[leaving()])
    c.leave(members=[leaving("nobody", "i")])
    c.leave(members=[leaving(group.follower.id, "i")])
    c.leave(members=[leaving(group.leader.id, "")])
    c.leave(members=[leaving(group.leader.id, "j")])


@scenario(state=IN_STATE)
def a_follower_leaves(s: Script, state: State) -> None:
    group = state(s)
    group.follower.leave()
    group.follower.leave()
    group.leader.heartbeat()
    group.outsider.describe()


@scenario(state=IN_STATE)
def the_leader_leaves(s: Script, state: State) -> None:
    group = state(s)
    group.leader.leave()
    group.follower.heartbeat()
    group.outsider.describe()


@scenario(state=IN_STATE)
def everybody_leaves(s: Script, state: State) -> None:
    group = state(s)
    group.outsider.leave(members=[member.identity for member in group.members])
    group.outsider.describe()


@scenario(state=IN_STATE)
def a_static_member_leaves_by_instance_id(s: Script, state: State) -> None:
    group = state(s, instances=[None, "i"])
    group.outsider.leave(members=[leaving("", "i")])
    group.outsider.leave(members=[leaving("", "i")])
    group.outsider.describe()


@scenario(state=IN_STATE)
def a_static_member_leaves_by_member_id(s: Script, state: State) -> None:
    group = state(s, instances=[None, "i"])
    group.outsider.leave(members=[leaving(group.follower.id)])
    group.outsider.describe()
    group.outsider.join(group_instance_id="i", member_id=group.follower.id)


@scenario()
def the_same_static_member_twice_in_a_batch(s: Script) -> None:
    group = stable_group(s, instances=[None, "i"])
    group.outsider.leave(members=[leaving("", "i"), leaving(group.follower.id, "i"), leaving("", "i")])


@scenario()
def the_last_one_who_is_missing_leaves(s: Script) -> None:
    group = stable_group(s, size=3)
    one, two, three = group.members
    waiting = two.rejoin(protocols=[{"name": "range", "metadata": b""}])
    s.until(PREPARING)
    leader = one.rejoin()
    leader.is_silent()
    group.outsider.leave(members=[leaving(three.id)])
    leader.reply()
    waiting.reply()


@scenario()
def everybody_leaves_who_has_not_joined(s: Script) -> None:
    group = preparing_group(s)
    group.outsider.leave(members=[member.identity for member in group.members])
    assert group.waiting is not None
    group.waiting.reply()
    group.outsider.describe()


@scenario()
def the_only_one_who_waits_leaves(s: Script) -> None:
    group = preparing_group(s)
    newcomer = [m for m in s.watch(s.group).members if m.client_id == "newcomer"]
    group.outsider.leave(members=[leaving(newcomer[0].member_id)])
    assert group.waiting is not None
    group.waiting.reply()
    group.outsider.describe()


@scenario()
def all_waiting_members_leave_in_one_batch(s: Script) -> None:
    group = stable_group(s, size=3)
    first = group.leader.rejoin()
    s.until(PREPARING)
    second = group.follower.rejoin()
    second.is_silent()
    group.outsider.leave(members=[group.leader.identity, group.follower.identity])
    first.reply()
    second.reply()
    group.outsider.describe()
    group.members[2].heartbeat()


@scenario()
def members_leave_while_others_join(s: Script) -> None:
    group = stable_group(s)
    newcomer = first_join(s.connect("another"))
    s.until(PREPARING, members=3)
    group.outsider.leave(members=[group.follower.identity])
    newcomer.is_silent()
    group.leader.rejoin().reply()
    newcomer.reply()


@scenario()
def a_group_of_given_out_ids_only(s: Script) -> None:
    a = s.connect()
    one, two = a.join(), a.join()
    a.leave(members=[leaving(one.member_id), leaving("nobody"), leaving(two.member_id)])
    a.describe()
    a.list_groups()


@scenario()
def a_group_of_offsets_only(s: Script) -> None:
    a = s.connect()
    a.commit()
    a.leave(members=[leaving("nobody"), leaving("", "i")])
    a.leave(2, member_id="nobody")


@scenario(state=states(EMPTY, COMPLETING, STABLE))
def an_empty_batch(s: Script, state: State) -> None:
    group = state(s)
    group.outsider.leave(members=[])
    group.leader.heartbeat()
