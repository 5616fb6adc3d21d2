# SPDX-License-Identifier: Apache-2.0
"""Members with a group.instance.id (KIP-345): restarts in every state, and what becomes of the replaced ids."""

from protocol.apis import ApiKey
from tests.kafka.differential.catalogue import every, scenario
from tests.kafka.differential.groups import (
    COMPLETING,
    EMPTY,
    IN_STATE,
    PREPARING,
    STABLE,
    Member,
    assignments,
    completing_group,
    stable_group,
)
from tests.kafka.differential.ordinary import commit_topic, delete_topic, protocols
from tests.kafka.differential.scenarios.join_group import OTHER_METADATA, State, states
from tests.kafka.differential.scenarios.leave_group import leaving
from tests.kafka.differential.script import Script

JOIN = ApiKey.JOIN_GROUP


@scenario(version=every(JOIN, since=5))
def a_follower_restarts_in_a_stable_group(s: Script, version: int) -> None:
    group = stable_group(s, instances=[None, "i"])
    back = group.outsider.join(version, group_instance_id="i")
    group.outsider.sync(member_id=back.member_id, group_instance_id="i", generation_id=2)
    group.leader.heartbeat()
    group.outsider.describe()


@scenario(version=every(JOIN, since=5))
def the_leader_restarts_in_a_stable_group(s: Script, version: int) -> None:
    group = stable_group(s, instances=["i", None])
    back = group.outsider.join(version, group_instance_id="i")
    group.outsider.sync(
        member_id=back.member_id,
        group_instance_id="i",
        generation_id=2,
        assignments=[{"member_id": back.member_id, "assignment": b"new"}],
    )
    group.follower.heartbeat()
    group.outsider.describe()
    group.outsider.send_join(version, group_instance_id="i", member_id=back.member_id).is_silent()


@scenario(version=every(JOIN, since=5))
def a_lone_leader_restarts(s: Script, version: int) -> None:
    group = stable_group(s, size=1, instances=["i"])
    group.outsider.join(version, group_instance_id="i")
    group.outsider.describe()


@scenario(state=IN_STATE)
def a_follower_restarts(s: Script, state: State) -> None:
    group = state(s, instances=["i", "j"])
    back = group.outsider.send_join(group_instance_id="j")
    if state in (IN_STATE[COMPLETING], IN_STATE[PREPARING]):
        back.is_silent()
        leader = group.leader.rejoin()
        back.reply()
        leader.reply()
    else:
        back.reply()
    group.follower.heartbeat()
    s.connect().describe()


@scenario(state=IN_STATE)
def the_leader_restarts(s: Script, state: State) -> None:
    group = state(s, instances=["i", "j"])
    back = group.outsider.send_join(group_instance_id="i")
    if state in (IN_STATE[COMPLETING], IN_STATE[PREPARING]):
        back.is_silent()
        follower = group.follower.rejoin()
        follower.reply()
        back.reply()
    else:
        back.reply()
    group.leader.heartbeat()
    s.connect().describe()


@scenario(state=states(STABLE, COMPLETING), who={"leader": 0, "follower": 1})
def a_restart_with_other_metadata(s: Script, state: State, who: int) -> None:
    group = state(s, instances=["i", "j"])
    member, other = group.members[who], group.members[1 - who]
    back = group.outsider.send_join(
        group_instance_id=member.instance_id, protocols=protocols("range", metadata=OTHER_METADATA)
    )
    if state is IN_STATE[STABLE]:
        back.reply()
    else:
        s.until(PREPARING)
        answer = other.rejoin()
        back.reply()
        answer.reply()
    s.connect().describe()


@scenario()
def a_restart_that_changes_the_common_protocol(s: Script) -> None:
    both = protocols("range", "roundrobin")
    group = stable_group(s, instances=["i", "j"], protocols=both)
    back = group.outsider.send_join(group_instance_id="j", protocols=protocols("roundrobin"))
    s.until(PREPARING)
    back.is_silent()
    group.leader.rejoin(protocols=both).reply()
    back.reply()


@scenario()
def a_restart_with_a_protocol_nobody_shares(s: Script) -> None:
    group = stable_group(s, instances=["i", "j"])
    group.outsider.join(group_instance_id="j", protocols=protocols("roundrobin"))
    group.outsider.join(group_instance_id="j", protocol_type="connect")
    group.follower.heartbeat()


@scenario()
def a_restart_with_other_timeouts(s: Script) -> None:
    group = stable_group(s, instances=["i", "j"], rebalance_timeout_ms=60_000)
    back = group.outsider.join(group_instance_id="j", session_timeout_ms=7_000, rebalance_timeout_ms=500)
    group.outsider.heartbeat(member_id=back.member_id, group_instance_id="j", generation_id=2)


@scenario()
def a_restart_under_another_client_id(s: Script) -> None:
    group = stable_group(s, instances=["i", "j"])
    other = s.connect("another-client")
    other.join(group_instance_id="j")
    other.describe()
    group.leader.heartbeat()


@scenario(state=states(STABLE, PREPARING, COMPLETING))
def the_replaced_id_is_fenced_everywhere(s: Script, state: State) -> None:
    group = state(s, instances=[None, "i"])
    s.connect().send_join(group_instance_id="i")
    old = group.follower
    s.until_gone(old.id)
    for generation in (-1, 1, 2, 3):
        group.outsider.heartbeat(**old.identity, generation_id=generation)
        group.outsider.sync(**old.identity, generation_id=generation)
        group.outsider.commit(**old.identity, generation_id_or_member_epoch=generation)
    group.outsider.join(**old.identity)
    group.outsider.join(**old.identity, protocols=protocols("other"))
    group.outsider.leave(members=[old.identity])
    s.note("without its instance id it is just unknown")
    group.outsider.heartbeat(member_id=old.id, generation_id=2)
    group.outsider.sync(member_id=old.id, generation_id=2)
    group.outsider.commit(member_id=old.id, generation_id_or_member_epoch=2)
    group.outsider.join(member_id=old.id)
    group.outsider.leave(members=[leaving(old.id)])
    group.outsider.leave(2, member_id=old.id)


@scenario(version=every(ApiKey.HEARTBEAT, since=3))
def a_fenced_heartbeat(s: Script, version: int) -> None:
    group = stable_group(s, instances=[None, "i"])
    group.outsider.join(group_instance_id="i")
    group.follower.heartbeat(version=version)


@scenario(version=every(ApiKey.SYNC_GROUP, since=3))
def a_fenced_sync(s: Script, version: int) -> None:
    group = stable_group(s, instances=[None, "i"])
    group.outsider.join(group_instance_id="i")
    group.follower.sync(version=version)


@scenario(version=every(ApiKey.JOIN_GROUP, since=5))
def a_fenced_join(s: Script, version: int) -> None:
    group = stable_group(s, instances=[None, "i"])
    group.outsider.join(group_instance_id="i")
    group.follower.rejoin(version=version).reply()


@scenario(version=every(ApiKey.OFFSET_COMMIT, since=7))
def a_fenced_commit(s: Script, version: int) -> None:
    group = stable_group(s, instances=[None, "i"])
    group.outsider.join(group_instance_id="i")
    group.follower.commit(version)


@scenario(version=every(ApiKey.LEAVE_GROUP, since=3))
def a_fenced_leave(s: Script, version: int) -> None:
    group = stable_group(s, instances=[None, "i"])
    back = group.outsider.join(group_instance_id="i")
    group.follower.leave(version=version)
    group.outsider.leave(version, members=[leaving(back.member_id, "i"), leaving("", "i")])


@scenario()
def a_waiting_join_of_the_replaced_id_is_fenced(s: Script) -> None:
    group = stable_group(s, instances=[None, "i"])
    first = group.leader.rejoin()
    s.until(PREPARING)
    first.is_silent()
    group.outsider.leave(members=[leaving("", "i")])
    first.reply()


@scenario()
def a_join_that_waits_is_replaced(s: Script) -> None:
    group = stable_group(s, size=3, instances=[None, "i", None])
    leader = group.leader.rejoin()
    s.until(PREPARING)
    waiting = group.follower.rejoin()
    waiting.is_silent()
    back = group.outsider.send_join(group_instance_id="i")
    waiting.reply()
    back.is_silent()
    group.members[2].rejoin().reply()
    back.reply()
    leader.reply()


@scenario()
def a_first_join_that_waits_is_replaced(s: Script) -> None:
    group = stable_group(s)
    waiting = s.connect().send_join(group_instance_id="i")
    s.until(PREPARING, members=3)
    back = group.outsider.send_join(group_instance_id="i")
    waiting.reply()
    back.is_silent()


@scenario()
def a_sync_that_waits_is_replaced(s: Script) -> None:
    group = completing_group(s, instances=[None, "i"])
    waiting = group.follower.send_sync()
    waiting.is_silent()
    back = group.outsider.send_join(group_instance_id="i")
    waiting.reply()
    back.is_silent()
    group.leader.rejoin().reply()
    back.reply()


@scenario()
def a_restart_is_followed_by_another(s: Script) -> None:
    group = stable_group(s, instances=[None, "i"])
    first = group.outsider.join(group_instance_id="i")
    second = group.outsider.join(group_instance_id="i")
    for answer in (first, second):
        group.outsider.heartbeat(member_id=answer.member_id, group_instance_id="i", generation_id=2)


@scenario()
def a_restarted_leader_rejoins(s: Script) -> None:
    group = stable_group(s, instances=["i", None])
    back = group.outsider.join(group_instance_id="i")
    again = Member(group.outsider, back.member_id, back.generation_id, "i")
    rejoin = again.rejoin()
    s.until(PREPARING)
    rejoin.is_silent()
    group.follower.rejoin().reply()
    rejoin.reply()


@scenario()
def a_restarted_follower_rejoins(s: Script) -> None:
    group = stable_group(s, instances=[None, "i"])
    back = group.outsider.join(group_instance_id="i")
    again = Member(group.outsider, back.member_id, back.generation_id, "i")
    again.rejoin().reply()
    again.rejoin(protocols=protocols("range", metadata=OTHER_METADATA)).is_silent()


@scenario(slow=True)
def a_static_member_that_does_not_rejoin_stays(s: Script) -> None:
    group = stable_group(s, instances=[None, "i"], rebalance_timeout_ms=3_000)
    group.leader.rejoin(rebalance_timeout_ms=3_000).reply()
    group.follower.heartbeat()
    group.outsider.describe()
    group.follower.rejoin(rebalance_timeout_ms=3_000).reply()


@scenario(slow=True)
def a_static_leader_that_does_not_rejoin_no_longer_leads(s: Script) -> None:
    group = stable_group(s, instances=["i", None], rebalance_timeout_ms=3_000)
    other = protocols("range", metadata=OTHER_METADATA)
    group.follower.rejoin(rebalance_timeout_ms=3_000, protocols=other).reply()
    group.outsider.describe()
    group.leader.heartbeat()


@scenario(slow=True)
def nobody_of_the_static_members_rejoins(s: Script) -> None:
    group = stable_group(s, size=3, instances=["i", "j", None], rebalance_timeout_ms=3_000)
    group.outsider.leave(members=[leaving(group.members[2].id)])
    s.until(PREPARING, members=2)
    s.note("the rebalance is prolonged until one of them comes, or the sessions end")
    group.leader.rejoin(rebalance_timeout_ms=3_000).reply()
    group.outsider.describe()


@scenario(slow=True, differs="pending-syncs-of-returned-static-members")
def a_follower_restarts_before_its_first_sync(s: Script) -> None:
    group = completing_group(s, instances=[None, "i"], rebalance_timeout_ms=3_000)
    group.leader.sync(assignments=assignments(group.members))
    # With its long timeout the rebalance, where there is one, lasts until the script has looked.
    joined = group.outsider.join(group_instance_id="i", rebalance_timeout_ms=60_000)
    back = Member(group.outsider, joined.member_id, joined.generation_id, "i")
    back.sync()
    s.let_pass(4_500)
    back.heartbeat()
    s.connect().describe()


@scenario()
def a_static_member_without_its_instance_id(s: Script) -> None:
    group = stable_group(s, instances=[None, "i"])
    follower = group.follower
    c = group.outsider
    c.heartbeat(member_id=follower.id, generation_id=2)
    c.sync(member_id=follower.id, generation_id=2)
    c.commit(member_id=follower.id, generation_id_or_member_epoch=2)
    c.join(member_id=follower.id)
    c.describe()


@scenario()
def the_instance_id_of_another(s: Script) -> None:
    group = stable_group(s, size=3, instances=["i", "j", None])
    one, two, three = group.members
    c = group.outsider
    for member, instance_id in ((one, "j"), (two, "i"), (three, "i")):
        c.heartbeat(member_id=member.id, group_instance_id=instance_id, generation_id=2)
        c.sync(member_id=member.id, group_instance_id=instance_id, generation_id=2)
        c.commit(member_id=member.id, group_instance_id=instance_id, generation_id_or_member_epoch=2)
        c.join(member_id=member.id, group_instance_id=instance_id)
        c.leave(members=[leaving(member.id, instance_id)])


@scenario()
def a_dynamic_member_gives_itself_an_instance_id(s: Script) -> None:
    group = stable_group(s)
    follower = group.follower
    group.outsider.join(member_id=follower.id, group_instance_id="i")
    group.outsider.heartbeat(member_id=follower.id, group_instance_id="i", generation_id=2)
    group.outsider.commit(member_id=follower.id, group_instance_id="i", generation_id_or_member_epoch=2)


@scenario()
def two_groups_may_have_the_same_instance_id(s: Script) -> None:
    first = stable_group(s, size=1, instances=["i"])
    other = s.id("other")
    second = stable_group(s, size=1, instances=["i"], group_id=other)
    first.leader.heartbeat()
    second.leader.heartbeat(group_id=other)
    first.outsider.heartbeat(**second.leader.current)


@scenario()
def offsets_survive_a_restart(s: Script) -> None:
    group = stable_group(s, instances=[None, "i"])
    group.follower.commit(topics=[commit_topic(s, "apples", (0, 11), (1, 12))])
    back = group.outsider.join(group_instance_id="i")
    mine = {"member_id": back.member_id, "group_instance_id": "i"}
    group.outsider.fetch_offsets()
    group.outsider.commit(**mine, generation_id_or_member_epoch=2)
    group.outsider.fetch_offsets()


@scenario()
def a_static_group_that_all_have_left(s: Script) -> None:
    group = stable_group(s, instances=["i", "j"])
    group.outsider.leave(members=[leaving("", "i"), leaving("", "j")])
    group.outsider.describe()
    group.outsider.join(group_instance_id="i")
    group.leader.heartbeat()


@scenario()
def a_leader_restarts_after_it_has_brought_nothing(s: Script) -> None:
    group = completing_group(s, instances=["i", None])
    group.leader.sync(assignments=[])
    back = group.outsider.join(group_instance_id="i")
    group.outsider.sync(
        member_id=back.member_id,
        group_instance_id="i",
        generation_id=2,
        assignments=assignments(group.members),
    )


@scenario(state=states(EMPTY, STABLE))
def an_unknown_id_with_a_known_instance(s: Script, state: State) -> None:
    group = state(s, instances=["i", None])
    group.outsider.join(member_id="nobody", group_instance_id="i")
    group.outsider.join(member_id=group.leader.id, group_instance_id="other")


@scenario(differs="subscriptions-of-returned-static-members")
def a_restart_with_another_subscription(s: Script) -> None:
    group = stable_group(s, size=1, instances=["i"])
    c = group.outsider
    with s.quietly():
        group.leader.commit(topics=[commit_topic(s, "apples", (0, 1)), commit_topic(s, "pears", (0, 2))])
    c.join(group_instance_id="i", protocols=protocols("range", metadata=OTHER_METADATA))
    c.delete_offsets(topics=[delete_topic("apples", 0), delete_topic("pears", 0)])
