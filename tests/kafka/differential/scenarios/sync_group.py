# SPDX-License-Identifier: Apache-2.0
"""SyncGroup: who may sync, what the leader brings, and who waits for it."""

from protocol.apis import ApiKey
from tests.kafka.differential.catalogue import every, scenario
from tests.kafka.differential.groups import (
    COMPLETING,
    EMPTY,
    IN_STATE,
    PREPARING,
    STABLE,
    assignments,
    completing_group,
    stable_group,
)
from tests.kafka.differential.ordinary import protocols
from tests.kafka.differential.scenarios.join_group import OTHER_METADATA, State, states
from tests.kafka.differential.script import Script

SYNC = ApiKey.SYNC_GROUP
INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1


@scenario(version=every(SYNC))
def in_each_version(s: Script, version: int) -> None:
    group = completing_group(s)
    waiting = group.follower.send_sync(version=version)
    waiting.is_silent()
    group.leader.sync(version=version, assignments=assignments(group.members))
    waiting.reply()
    group.follower.sync(version=version)
    group.outsider.describe()


@scenario(version=every(SYNC))
def errors_of_each_version(s: Script, version: int) -> None:
    group = completing_group(s)
    c = group.outsider
    c.sync(version, group_id="")
    c.sync(version)
    c.sync(version, group_id=s.id("none"))
    c.sync(version, member_id="nobody")
    group.leader.sync(version=version, generation_id=1)
    group.leader.sync(version=version, protocol_name="other")
    group.leader.sync(version=version, group_instance_id="i")


@scenario(state=IN_STATE)
def generations(s: Script, state: State) -> None:
    group = state(s, instances=[None, "i"])
    wrong = (INT32_MIN, -1, 0, 1, 3, INT32_MAX)
    for generation in wrong:
        group.leader.sync(generation_id=generation)
        group.follower.sync(generation_id=generation)


@scenario(state=IN_STATE)
def ids(s: Script, state: State) -> None:
    group = state(s, instances=["i", None])
    leader, follower = group.leader, group.follower
    wrong = [
        *((member_id, instance) for member_id in ("", "nobody") for instance in ("", "i", "j", None)),
        *((leader.id, instance) for instance in ("", "j")),
        *((follower.id, instance) for instance in ("", "i", "j")),
    ]
    for member_id, instance_id in wrong:
        for generation in (1, 2):
            group.outsider.sync(member_id=member_id, group_instance_id=instance_id, generation_id=generation)


@scenario(state=IN_STATE)
def protocols_that_do_not_match(s: Script, state: State) -> None:
    group = state(s)
    for protocol_type, name in (
        (None, None),
        (None, "range"),
        ("consumer", None),
        ("", ""),
        ("", "range"),
        ("consumer", ""),
        ("connect", "range"),
        ("consumer", "roundrobin"),
        ("Consumer", "Range"),
    ):
        group.leader.sync(protocol_type=protocol_type, protocol_name=name)
        group.leader.sync(protocol_type=protocol_type, protocol_name=name, generation_id=1)
        group.outsider.sync(protocol_type=protocol_type, protocol_name=name, group_id="")
        group.outsider.sync(protocol_type=protocol_type, protocol_name=name, member_id="nobody")


@scenario(state=states(EMPTY, PREPARING, STABLE))
def a_right_sync_outside_of_completing(s: Script, state: State) -> None:
    group = state(s)
    group.leader.sync(assignments=[{"member_id": group.leader.id, "assignment": b"other"}])
    group.follower.sync()
    group.outsider.describe()


@scenario()
def the_leader_may_leave_members_out(s: Script) -> None:
    group = completing_group(s, size=3)
    group.leader.sync(assignments=assignments(group.members[:2]))
    for member in group.members[1:]:
        member.sync()
    group.outsider.describe()


@scenario()
def the_leader_may_bring_nothing(s: Script) -> None:
    group = completing_group(s)
    waiting = group.follower.send_sync()
    waiting.is_silent()
    group.leader.sync()
    waiting.reply()
    group.outsider.describe()


@scenario()
def ids_that_the_leader_makes_up_are_ignored(s: Script) -> None:
    group = completing_group(s)
    made_up = [{"member_id": "nobody", "assignment": b"x"}, {"member_id": "", "assignment": b"y"}]
    group.leader.sync(assignments=[*made_up, *assignments(group.members)])
    group.follower.sync()
    group.outsider.describe()


@scenario()
def an_assignment_that_comes_twice(s: Script) -> None:
    group = completing_group(s)
    twice = [{"member_id": group.follower.id, "assignment": data} for data in (b"first", b"second")]
    group.leader.sync(assignments=twice)
    group.follower.sync()


@scenario()
def empty_and_large_assignments(s: Script) -> None:
    group = completing_group(s)
    given = [
        {"member_id": group.leader.id, "assignment": b""},
        {"member_id": group.follower.id, "assignment": b"x" * 100_000},
    ]
    group.leader.sync(assignments=given)
    group.follower.sync()


@scenario()
def what_a_follower_brings_is_ignored(s: Script) -> None:
    group = completing_group(s)
    waiting = group.follower.send_sync(
        assignments=[{"member_id": member.id, "assignment": b"mine"} for member in group.members]
    )
    waiting.is_silent()
    group.leader.sync(assignments=assignments(group.members))
    waiting.reply()


@scenario()
def a_second_sync_takes_the_place_of_the_first(s: Script) -> None:
    group = completing_group(s)
    first = group.follower.send_sync()
    first.is_silent()
    second = s.connect().send_sync(**group.follower.current)
    second.is_silent()
    group.leader.sync(assignments=assignments(group.members))
    second.reply()
    first.is_silent()


@scenario()
def a_sync_whose_connection_drops(s: Script) -> None:
    group = completing_group(s)
    group.follower.send_sync()
    s.settle()
    group.follower.link.hang_up()
    group.leader.sync(assignments=assignments(group.members))
    group.outsider.describe()


@scenario()
def a_join_while_others_sync(s: Script) -> None:
    group = completing_group(s)
    waiting = group.follower.send_sync()
    waiting.is_silent()
    group.outsider.send_join(3)
    waiting.reply()
    group.leader.sync(assignments=assignments(group.members))


@scenario()
def the_leader_leaves_while_others_sync(s: Script) -> None:
    group = completing_group(s)
    waiting = group.follower.send_sync()
    waiting.is_silent()
    group.leader.leave()
    waiting.reply()
    group.outsider.describe()


@scenario()
def a_follower_leaves_while_it_syncs(s: Script) -> None:
    group = completing_group(s)
    waiting = group.follower.send_sync()
    waiting.is_silent()
    group.outsider.leave(members=[group.follower.identity])
    waiting.is_silent()
    group.leader.sync()
    group.outsider.describe()


@scenario()
def a_follower_rejoins_while_it_syncs(s: Script) -> None:
    group = completing_group(s)
    waiting = group.follower.send_sync()
    waiting.is_silent()
    other = s.connect()
    other.join(member_id=group.follower.id)
    waiting.is_silent()
    group.leader.sync(assignments=assignments(group.members))
    waiting.reply()


@scenario()
def a_follower_brings_other_metadata_while_it_syncs(s: Script) -> None:
    group = completing_group(s)
    waiting = group.follower.send_sync()
    waiting.is_silent()
    other = s.connect()
    rejoin = other.send_join(
        member_id=group.follower.id, protocols=protocols("range", metadata=OTHER_METADATA)
    )
    waiting.reply()
    group.leader.rejoin().reply()
    rejoin.reply()


@scenario(slow=True)
def a_follower_that_never_syncs(s: Script) -> None:
    group = completing_group(s, rebalance_timeout_ms=3_000)
    group.leader.sync(assignments=assignments(group.members))
    s.until(PREPARING, members=1)
    group.leader.heartbeat()
    group.follower.heartbeat()
    group.leader.rejoin().reply()


@scenario(slow=True)
def a_leader_that_never_syncs(s: Script) -> None:
    group = completing_group(s, rebalance_timeout_ms=3_000)
    waiting = group.follower.send_sync()
    waiting.reply()
    group.leader.heartbeat()
    group.outsider.describe()
    group.follower.rejoin().reply()


@scenario(slow=True)
def nobody_ever_syncs(s: Script) -> None:
    group = completing_group(s, rebalance_timeout_ms=3_000)
    s.until(EMPTY, members=0)
    group.outsider.describe()
    group.outsider.join(3)


@scenario(slow=True)
def static_members_that_never_sync(s: Script) -> None:
    group = completing_group(s, instances=["i", "j"], rebalance_timeout_ms=3_000)
    s.until(EMPTY, members=0)
    group.leader.rejoin().reply()


@scenario(state=states(COMPLETING, STABLE))
def a_lone_leader(s: Script, state: State) -> None:
    group = state(s, size=1)
    group.leader.sync(assignments=assignments(group.members))
    group.outsider.describe()


@scenario()
def a_stable_leader_brings_other_assignments(s: Script) -> None:
    group = stable_group(s)
    changed = [{"member_id": member.id, "assignment": b"changed"} for member in group.members]
    group.leader.sync(assignments=changed)
    group.follower.sync()
