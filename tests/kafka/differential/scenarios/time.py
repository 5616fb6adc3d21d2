# SPDX-License-Identifier: Apache-2.0
"""What time does to groups, with the short limits of `TIGHT`: sessions that end, joins that wait for more members."""

from protocol.apis import ApiKey
from tests.kafka.differential.catalogue import TIGHT, every, scenario
from tests.kafka.differential.groups import (
    EMPTY,
    PREPARING,
    STABLE,
    Member,
    assignments,
    first_join,
)
from tests.kafka.differential.ordinary import protocols
from tests.kafka.differential.scenarios.join_group import OTHER_METADATA
from tests.kafka.differential.scenarios.leave_group import leaving
from tests.kafka.differential.script import Link, Script

SHORT_MS = 500
SEEN_MS = 3_000
"""So long that a script on a busy machine sees what is so before."""
LONG_MS = 60_000


def alone(s: Script, link: Link, instance_id: str | None = None, **fields: object) -> Member:
    """The only member of a group in CompletingRebalance."""
    with s.quietly():
        joined = first_join(link, instance_id, **fields).reply()
    return Member(link, joined.member_id, joined.generation_id, instance_id)


def members_together(s: Script, *sessions_ms: int, rebalance_ms: int = LONG_MS) -> list[Member]:
    """Members that have joined the first generation one after the other, the leader first; nobody has synced."""
    links = [s.connect(f"client-{number}") for number, _ in enumerate(sessions_ms, 1)]
    waiting = []
    with s.quietly():
        for count, (link, session_ms) in enumerate(zip(links, sessions_ms, strict=True), 1):
            waiting.append(
                link.send_join(3, session_timeout_ms=session_ms, rebalance_timeout_ms=rebalance_ms)
            )
            s.until(PREPARING, members=count)
        answers = [each.reply() for each in waiting]
    members = [Member(link, answer.member_id, 1) for link, answer in zip(links, answers, strict=True)]
    assert answers[0].leader == members[0].id, answers
    told = [s.names.text(member.id) for member in members]
    s.note(f"{', '.join(told)} have joined, sessions of {', '.join(map(str, sessions_ms))} ms")
    return members


@scenario(settings=TIGHT, slow=True)
def session_timeouts_at_their_limits(s: Script) -> None:
    a = s.connect()
    for timeout_ms in (99, 100, 60_000, 60_001):
        a.join(session_timeout_ms=timeout_ms)


@scenario(settings=TIGHT, slow=True)
def a_first_join_waits_for_others(s: Script) -> None:
    a, b = s.connect("client-a"), s.connect("client-b")
    first = a.send_join(3)
    s.until(PREPARING, members=1)
    first.is_silent()
    second = b.send_join(3)
    second.reply()
    first.reply()


@scenario(settings=TIGHT, slow=True)
def the_first_rebalance_waits_even_when_all_have_joined(s: Script) -> None:
    a = s.connect()
    asked = a.join()
    waiting = a.send_join(member_id=asked.member_id)
    s.until(PREPARING, members=1)
    waiting.is_silent()
    waiting.reply()


@scenario(settings=TIGHT, slow=True)
def later_rebalances_do_not_wait(s: Script) -> None:
    a = s.connect()
    first = alone(s, a)
    first.sync(assignments=assignments([first]))
    first.rejoin().reply()


@scenario(settings=TIGHT, slow=True)
def an_emptied_group_waits_again(s: Script) -> None:
    a = s.connect()
    first = alone(s, a)
    first.leave()
    again = a.send_join(3)
    s.until(PREPARING, members=1)
    again.is_silent()
    again.reply()


@scenario(settings=TIGHT, slow=True)
def who_leaves_while_the_first_rebalance_waits(s: Script) -> None:
    a, b = s.connect("client-a"), s.connect("client-b")
    first = a.send_join(3)
    s.until(PREPARING, members=1)
    b.leave(members=[leaving(s.watch(s.group).members[0].member_id)])
    first.reply()
    b.describe()
    b.join(3)


@scenario(settings=TIGHT, slow=True, version=every(ApiKey.JOIN_GROUP))
def a_group_that_is_full(s: Script, version: int) -> None:
    members = members_together(s, LONG_MS, LONG_MS, LONG_MS)
    d = s.connect()
    d.join(version)
    if version >= 5:
        d.join(version, group_instance_id="i")
    d.join(version, member_id="nobody")
    members[1].rejoin(version=version).reply()
    d.join(version, protocols=protocols("other"))


@scenario(settings=TIGHT, slow=True)
def a_full_group_in_each_state(s: Script) -> None:
    leader, *others = members_together(s, LONG_MS, LONG_MS, LONG_MS, rebalance_ms=10_000)
    d = s.connect()
    d.join(3)
    with s.quietly():
        leader.sync(assignments=assignments([leader, *others]))
    s.until(STABLE)
    d.join(3)
    rejoin = leader.rejoin(rebalance_timeout_ms=10_000)
    s.until(PREPARING)
    s.note("those who wait are counted now, and only one does")
    asked = d.join()
    newcomer = d.send_join(member_id=asked.member_id, rebalance_timeout_ms=10_000)
    s.until(PREPARING, members=4)
    second = others[0].rejoin(rebalance_timeout_ms=10_000)
    second.is_silent()
    s.note("three wait now")
    others[1].rejoin().reply()
    second.reply()
    newcomer.reply()
    rejoin.reply()


@scenario(settings=TIGHT, slow=True)
def ids_are_given_out_although_the_group_will_be_full(s: Script) -> None:
    links = [s.connect(f"client-{number}") for number in range(4)]
    asked = [link.join() for link in links]
    waiting = []
    for count, (link, one) in enumerate(zip(links[:3], asked, strict=False), 1):
        waiting.append(link.send_join(member_id=one.member_id))
        s.until(PREPARING, members=count)
    links[3].join(member_id=asked[3].member_id)
    for answer in waiting[::-1]:
        answer.reply()


@scenario(settings=TIGHT, slow=True)
def a_session_that_ends(s: Script) -> None:
    a = s.connect()
    member = alone(s, a, session_timeout_ms=SHORT_MS)
    member.sync(assignments=assignments([member]))
    s.until(EMPTY, members=0)
    member.heartbeat()
    member.commit()
    member.sync()
    member.rejoin().reply()
    member.leave()
    a.describe()


@scenario(settings=TIGHT, slow=True)
def a_session_that_ends_before_the_sync(s: Script) -> None:
    a = s.connect()
    alone(s, a, session_timeout_ms=SHORT_MS)
    s.until(EMPTY, members=0)
    a.describe()


@scenario(settings=TIGHT, slow=True)
def a_static_members_session_that_ends(s: Script) -> None:
    a = s.connect()
    member = alone(s, a, "i", session_timeout_ms=SHORT_MS)
    member.sync(assignments=assignments([member]))
    s.until(EMPTY, members=0)
    member.heartbeat()
    a.leave(members=[leaving("", "i")])
    a.describe()


@scenario(
    settings=TIGHT,
    slow=True,
    sessions={"the leader's": (SHORT_MS, LONG_MS), "the follower's": (LONG_MS, SHORT_MS)},
)
def one_of_two_sessions_ends(s: Script, sessions: tuple[int, int]) -> None:
    leader, follower = members_together(s, *sessions)
    with s.quietly():
        leader.sync(assignments=assignments([leader, follower]))
        follower.sync()
    s.until(PREPARING, members=1)
    for member in (leader, follower):
        member.heartbeat()
    for member in (leader, follower):
        member.rejoin().reply()


@scenario(
    settings=TIGHT,
    slow=True,
    sessions={"the leader's": (SHORT_MS, LONG_MS), "the follower's": (LONG_MS, SHORT_MS)},
)
def one_of_two_sessions_ends_before_the_sync(s: Script, sessions: tuple[int, int]) -> None:
    leader, follower = members_together(s, *sessions)
    s.until(PREPARING, members=1)
    for member in (leader, follower):
        member.sync()
    for member in (leader, follower):
        member.rejoin().reply()


@scenario(settings=TIGHT, slow=True)
def a_session_does_not_end_while_its_sync_waits(s: Script) -> None:
    leader, follower = members_together(s, LONG_MS, SHORT_MS)
    waiting = follower.send_sync()
    s.let_pass(2 * SHORT_MS)
    waiting.is_silent()
    leader.sync(assignments=assignments([leader, follower]))
    waiting.reply()


@scenario(settings=TIGHT, slow=True)
def a_session_does_not_end_while_its_join_waits(s: Script) -> None:
    leader, follower = members_together(s, LONG_MS, SHORT_MS)
    with s.quietly():
        leader.sync(assignments=assignments([leader, follower]))
    waiting = follower.rejoin(
        session_timeout_ms=SHORT_MS, protocols=protocols("range", metadata=OTHER_METADATA)
    )
    s.until(PREPARING)
    s.let_pass(2 * SHORT_MS)
    waiting.is_silent()
    leader.rejoin().reply()
    waiting.reply()


@scenario(settings=TIGHT, slow=True)
def a_newcomers_session_does_not_end_while_its_join_waits(s: Script) -> None:
    leader, follower = members_together(s, LONG_MS, LONG_MS)
    with s.quietly():
        leader.sync(assignments=assignments([leader, follower]))
    waiting = s.connect("newcomer").send_join(3, session_timeout_ms=SHORT_MS)
    s.until(PREPARING, members=3)
    s.let_pass(2 * SHORT_MS)
    waiting.is_silent()


@scenario(settings=TIGHT, slow=True)
def ids_that_are_given_out_expire(s: Script) -> None:
    a = s.connect()
    member = alone(s, a)
    member.sync(assignments=assignments([member]))
    asked = s.connect().join(session_timeout_ms=SEEN_MS)
    rejoin = member.rejoin()
    s.until(PREPARING)
    rejoin.is_silent()
    rejoin.reply()
    a.join(member_id=asked.member_id)


@scenario(
    settings=TIGHT,
    slow=True,
    sessions={"longer": (SHORT_MS, LONG_MS), "shorter": (LONG_MS, SHORT_MS)},
    differs="sessions-of-returned-static-members",
)
def a_static_member_restarts_with_another_session_timeout(s: Script, sessions: tuple[int, int]) -> None:
    before_ms, after_ms = sessions
    member = alone(s, s.connect(), "i", session_timeout_ms=before_ms)
    member.sync(assignments=assignments([member]))
    back = s.connect()
    back.join(group_instance_id="i", session_timeout_ms=after_ms)
    s.let_pass(3 * SHORT_MS)
    back.describe()
