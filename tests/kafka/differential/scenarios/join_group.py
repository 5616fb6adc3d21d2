# SPDX-License-Identifier: Apache-2.0
"""JoinGroup: who may join, under which id, with which protocols, and what a join sets off."""

from collections.abc import Callable
from typing import Any

from protocol.apis import ApiKey
from tests.kafka.differential.catalogue import every, scenario
from tests.kafka.differential.groups import (
    COMPLETING,
    DEAD,
    EMPTY,
    IN_STATE,
    PREPARING,
    STABLE,
    Group,
    first_join,
    stable_group,
)
from tests.kafka.differential.ordinary import protocols
from tests.kafka.differential.script import Pending, Script
from tests.support.consumer_protocol import encode_subscription

JOIN = ApiKey.JOIN_GROUP
OTHER_METADATA = encode_subscription(["pears"], version=0)
INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1

State = Callable[..., Group]


def states(*names: str) -> dict[str, State]:
    return {name: IN_STATE[name] for name in names}


# --- by version


@scenario(version=every(JOIN))
def a_first_dynamic_join(s: Script, version: int) -> None:
    a = s.connect()
    joined = a.join(version)
    if version >= 4:
        a.join(version, member_id=joined.member_id)
    a.describe()


@scenario(version=every(JOIN, since=5))
def a_first_static_join(s: Script, version: int) -> None:
    a = s.connect()
    a.join(version, group_instance_id="i")
    a.describe()


@scenario(version=every(JOIN))
def two_members_join(s: Script, version: int) -> None:
    a, b = s.connect("client-a"), s.connect("client-b")
    first = a.join(version)
    if version >= 4:
        first = a.join(version, member_id=first.member_id)
        asked = b.join(version)
        second = b.send_join(version, member_id=asked.member_id)
    else:
        second = b.send_join(version)
    s.until(PREPARING, members=2)
    second.is_silent()
    a.join(version, member_id=first.member_id)
    second.reply()


@scenario(version=every(JOIN))
def errors_of_each_version(s: Script, version: int) -> None:
    a = s.connect()
    a.join(version, group_id="")
    a.join(version, session_timeout_ms=0)
    a.join(version, member_id="nobody")
    a.join(version, protocols=[])
    a.join(version, protocol_type="")
    if version >= 5:
        a.join(version, member_id="nobody", group_instance_id="i")


@scenario(version=every(JOIN, since=8))
def a_reason(s: Script, version: int) -> None:
    a = s.connect()
    for reason in (None, "", "because", "x" * 300):
        a.join(version, reason=reason)


# --- fields and their limits


@scenario()
def session_timeouts_at_their_limits(s: Script) -> None:
    a = s.connect()
    for timeout_ms in (INT32_MIN, -1, 0, 5_999, 6_000, 1_800_000, 1_800_001, INT32_MAX):
        a.join(session_timeout_ms=timeout_ms)


@scenario(slow=True, timeout_ms=[1, 1_000, INT32_MAX])
def rebalance_timeouts(s: Script, timeout_ms: int) -> None:
    a = s.connect()
    joined = a.join(3, rebalance_timeout_ms=timeout_ms)
    if timeout_ms == 1:
        s.until(EMPTY, members=0)
    else:
        a.heartbeat(member_id=joined.member_id)


@scenario(timeout_ms=[0, -1, INT32_MIN])
def a_rebalance_that_may_take_no_time(s: Script, timeout_ms: int) -> None:
    a = s.connect()
    a.join(3, rebalance_timeout_ms=timeout_ms)
    s.until(EMPTY, members=0)


@scenario()
def version_0_waits_as_long_as_a_session(s: Script) -> None:
    a, b = s.connect(), s.connect()
    first = a.join(0, session_timeout_ms=60_000, rebalance_timeout_ms=1)
    second = b.send_join(0, session_timeout_ms=60_000, rebalance_timeout_ms=1)
    s.until(PREPARING, members=2)
    second.is_silent()
    a.join(0, member_id=first.member_id, session_timeout_ms=60_000)
    second.reply()


@scenario(
    group_id={"long": "x" * 1_000, "blank": " ", "accents": "grüße", "emoji": "\U0001f600", "dots": ".."}
)
def group_ids(s: Script, group_id: str) -> None:
    a = s.connect()
    mine = s.id(group_id)
    joined = a.join(3, group_id=mine)
    a.sync(group_id=mine, member_id=joined.member_id)
    a.heartbeat(group_id=mine, member_id=joined.member_id)
    a.describe(groups=[mine])
    a.list_groups()
    a.leave(group_id=mine, members=[{"member_id": joined.member_id, "group_instance_id": None}])


@scenario(client_id={"null": None, "empty": "", "accents": "grüße", "long": "x" * 300, "odd": "a b/c{}"})
def client_ids(s: Script, client_id: str | None) -> None:
    a = s.connect(client_id)
    first = a.join()
    a.join(member_id=first.member_id)
    a.describe()


@scenario(instance_id={"empty": "", "long": "x" * 249, "longer": "x" * 250, "odd": "a b/ü", "dot": "."})
def instance_ids(s: Script, instance_id: str) -> None:
    a = s.connect()
    a.join(group_instance_id=instance_id)
    a.describe()


@scenario(protocol_type={"other": "connect", "upper": "Consumer", "odd": "a b/ü", "blank": " "})
def protocol_types(s: Script, protocol_type: str) -> None:
    a = s.connect()
    joined = a.join(3, protocol_type=protocol_type)
    a.sync(member_id=joined.member_id, protocol_type=protocol_type)
    a.describe()
    a.list_groups()
    a.join(protocol_type="consumer")


@scenario(name={"empty": "", "odd": "a b/ü", "long": "x" * 300})
def protocol_names(s: Script, name: str) -> None:
    a = s.connect()
    joined = a.join(3, protocol_type="other", protocols=protocols(name, metadata=b"m"))
    a.sync(member_id=joined.member_id, protocol_type="other", protocol_name=name)
    a.sync(4, member_id=joined.member_id)
    a.describe()


@scenario(
    metadata={
        "empty": b"",
        "version only": b"\0\0",
        "short": b"\0",
        "version 9": b"\0\x09\0\0\0\0\xff\xff\xff\xff",
        "text": b"some text",
        "a count without names": b"\0\0\0\0\0\x05",
        "names cut off": b"\0\0\0\0\0\1\0\x09ab",
    }
)
def metadata_of_consumers(s: Script, metadata: bytes) -> None:
    a = s.connect()
    joined = a.join(3, protocols=protocols("range", metadata=metadata))
    a.sync(member_id=joined.member_id)
    a.describe()
    a.delete_offsets()


@scenario(metadata={"empty": b"", "text": b"some text", "large": b"x" * 100_000})
def metadata_of_others(s: Script, metadata: bytes) -> None:
    a = s.connect()
    joined = a.join(3, protocol_type="other", protocols=protocols("p", metadata=metadata))
    a.sync(member_id=joined.member_id, protocol_type="other", protocol_name="p")
    a.describe()


@scenario(differs="repeated-protocols", protocol_type=["consumer", "other"])
def the_same_protocol_twice(s: Script, protocol_type: str) -> None:
    a = s.connect()
    twice = [{"name": "range", "metadata": b"1"}, {"name": "range", "metadata": b"2"}]
    a.send_join(3, protocol_type=protocol_type, protocols=twice).is_silent()


# --- which error comes first


@scenario()
def which_error_comes_first(s: Script) -> None:
    a = s.connect()
    a.join(group_id="", session_timeout_ms=0, protocols=[], member_id="nobody")
    a.join(session_timeout_ms=0, protocols=[], member_id="nobody")
    a.join(protocols=[], member_id="nobody")
    a.join(protocol_type="", member_id="nobody", group_instance_id="i")
    group = stable_group(s, instances=["i", None])
    c = group.outsider
    c.join(protocols=protocols("other"), member_id="nobody")
    c.join(protocol_type="other", member_id="nobody", group_instance_id="i")
    c.join(session_timeout_ms=1, protocol_type="other")
    c.join(member_id="nobody", group_instance_id="i")
    c.join(member_id="nobody", group_instance_id="j")
    c.join(member_id=group.follower.id, group_instance_id="i")
    c.join(member_id=group.follower.id, group_instance_id="j")
    c.join(member_id=group.leader.id, group_instance_id="")


# --- in each state


@scenario(state=IN_STATE)
def protocols_that_do_not_match(s: Script, state: State) -> None:
    group = state(s)
    c = group.outsider
    c.join(protocol_type="connect")
    c.join(protocols=protocols("roundrobin"))
    c.join(protocols=[])
    c.join(protocol_type="")
    c.join(protocols=protocols(""))


@scenario(state=IN_STATE)
def ids_that_are_not_members(s: Script, state: State) -> None:
    group = state(s)
    c = group.outsider
    c.join(member_id="nobody")
    c.join(member_id="client-00000000-0000-0000-0000-000000000000")
    c.join(member_id="nobody", group_instance_id="i")
    c.join(member_id=group.leader.id, group_instance_id="i")


@scenario(state=IN_STATE, version={"v3": 3, "v9": 9})
def a_newcomer(s: Script, state: State, version: int) -> None:
    group = state(s)
    c = group.outsider
    if version == 9:
        first = c.join(member_id="")
        answer = c.send_join(member_id=first.member_id)
    else:
        answer = c.send_join(3)
    if state in (IN_STATE[EMPTY], IN_STATE[DEAD]):
        answer.reply()
        c.describe()
    else:
        s.until(PREPARING, members=4 if state is IN_STATE[PREPARING] else 3)
        answer.is_silent()


@scenario(state=IN_STATE)
def a_static_newcomer(s: Script, state: State) -> None:
    group = state(s)
    c = group.outsider
    answer = c.send_join(group_instance_id="new")
    if state in (IN_STATE[EMPTY], IN_STATE[DEAD]):
        answer.reply()
        c.describe()
    else:
        s.until(PREPARING, members=4 if state is IN_STATE[PREPARING] else 3)
        answer.is_silent()


@scenario(state=IN_STATE)
def the_leader_joins_again(s: Script, state: State) -> None:
    group = state(s)
    rejoin = group.leader.rejoin()
    if state in (IN_STATE[PREPARING], IN_STATE[STABLE]):
        rejoin.is_silent()
    else:
        rejoin.reply()
    group.outsider.describe()


@scenario(state=IN_STATE)
def a_follower_joins_again(s: Script, state: State) -> None:
    group = state(s)
    rejoin = group.follower.rejoin()
    if state is IN_STATE[PREPARING]:
        rejoin.is_silent()
    else:
        rejoin.reply()
    group.outsider.describe()


@scenario(state=states(COMPLETING, STABLE))
def a_follower_brings_other_metadata(s: Script, state: State) -> None:
    group = state(s)
    rejoin = group.follower.rejoin(protocols=protocols("range", metadata=OTHER_METADATA))
    s.until(PREPARING)
    rejoin.is_silent()
    group.leader.rejoin().reply()
    rejoin.reply()


@scenario(state=states(COMPLETING, STABLE))
def the_leader_brings_other_metadata(s: Script, state: State) -> None:
    group = state(s)
    rejoin = group.leader.rejoin(protocols=protocols("range", metadata=OTHER_METADATA))
    s.until(PREPARING)
    rejoin.is_silent()
    group.follower.heartbeat()
    group.follower.rejoin().reply()
    rejoin.reply()


@scenario(state=states(COMPLETING, STABLE))
def a_follower_joins_with_other_timeouts(s: Script, state: State) -> None:
    group = state(s)
    group.follower.rejoin(session_timeout_ms=10_000, rebalance_timeout_ms=1).reply()
    group.follower.heartbeat()
    group.outsider.describe()


@scenario()
def a_follower_joins_under_another_client_id(s: Script) -> None:
    group = stable_group(s)
    other = s.connect("another-client")
    other.join(member_id=group.follower.id)
    other.describe()
    answer = other.send_join(
        member_id=group.follower.id, protocols=protocols("range", metadata=OTHER_METADATA)
    )
    s.until(PREPARING)
    group.leader.rejoin().reply()
    answer.reply()
    other.describe()


@scenario(state=states(COMPLETING, STABLE))
def a_follower_offers_more_protocols(s: Script, state: State) -> None:
    group = state(s)
    rejoin = group.follower.rejoin(protocols=protocols("range", "roundrobin"))
    s.until(PREPARING)
    group.leader.rejoin(protocols=protocols("roundrobin", "range")).reply()
    rejoin.reply()


@scenario()
def a_follower_may_not_drop_the_common_protocol(s: Script) -> None:
    group = stable_group(s)
    group.follower.rejoin(protocols=protocols("roundrobin")).reply()
    group.follower.rejoin(protocol_type="connect").reply()
    group.follower.heartbeat()


@scenario()
def a_lone_member_may_not_drop_the_common_protocol_either(s: Script) -> None:
    group = stable_group(s, size=1)
    group.leader.rejoin(protocols=protocols("roundrobin")).reply()
    group.leader.rejoin(protocols=protocols("roundrobin", "range")).reply()


# --- the choice of the protocol


def _offers(*names: str) -> list[dict[str, Any]]:
    return protocols(*names, metadata=b"m")


def _choice(s: Script, *offers: tuple[str, ...]) -> None:
    """Members that offer these, in this order of preference, form a group."""
    links = [s.connect() for _ in offers]
    with s.quietly():
        first = links[0].join(3, protocol_type="other", protocols=_offers(*offers[0]))
        waiting = []
        for count, (link, names) in enumerate(zip(links[1:], offers[1:], strict=True), 2):
            waiting.append(link.send_join(3, protocol_type="other", protocols=_offers(*names)))
            s.until(PREPARING, members=count)
    leader = links[0].send_join(
        3, protocol_type="other", protocols=_offers(*offers[0]), member_id=first.member_id
    )
    for answer in [*waiting, leader]:
        answer.reply()


@scenario(
    offers={
        "one in common": [("a", "b"), ("b", "c")],
        "most votes": [("a", "b"), ("b", "a"), ("b", "a")],
        "only candidates count": [("a", "b"), ("a", "b"), ("c", "b")],
        "a tie of two": [("a", "b"), ("b", "a")],
        "the same tie the other way": [("b", "a"), ("a", "b")],
        "a tie of assignors": [("roundrobin", "range"), ("range", "roundrobin")],
        "a tie of sticky ones": [("sticky", "cooperative-sticky"), ("cooperative-sticky", "sticky")],
        "the same tie of sticky ones": [("cooperative-sticky", "sticky"), ("sticky", "cooperative-sticky")],
        "a tie of three": [("x", "y", "z"), ("y", "z", "x"), ("z", "x", "y")],
    }
)
def choosing_a_protocol(s: Script, offers: list[tuple[str, ...]]) -> None:
    _choice(s, *offers)


# --- ids that were given out


@scenario()
def an_id_that_was_given_out_can_only_join(s: Script) -> None:
    a, b = s.connect(), s.connect("other")
    asked = a.join()
    member_id = asked.member_id
    for generation in (-1, 0, 1):
        a.heartbeat(member_id=member_id, generation_id=generation)
        a.sync(member_id=member_id, generation_id=generation)
        a.commit(member_id=member_id, generation_id_or_member_epoch=generation)
    a.describe()
    a.list_groups()
    b.join(member_id=member_id)
    b.describe()


@scenario(differs="given-out-ids-with-an-instance-id")
def an_id_that_was_given_out_is_no_static_members(s: Script) -> None:
    a = s.connect()
    asked = a.join()
    a.join(member_id=asked.member_id, group_instance_id="i")
    a.join(member_id=asked.member_id)


@scenario()
def an_id_that_was_given_out_may_join_in_any_version(s: Script) -> None:
    a = s.connect()
    asked = a.join(4)
    a.join(0, member_id=asked.member_id)


@scenario()
def an_id_that_was_given_out_can_be_given_back(s: Script) -> None:
    a = s.connect()
    asked = a.join()
    given_back = [{"member_id": asked.member_id, "group_instance_id": None}]
    a.leave(members=given_back)
    a.leave(members=given_back)
    a.join(member_id=asked.member_id)
    asked = a.join()
    a.leave(2, member_id=asked.member_id)
    a.leave(2, member_id=asked.member_id)


@scenario()
def giving_an_id_back_lets_a_stable_group_rebalance(s: Script) -> None:
    group = stable_group(s)
    asked = group.outsider.join()
    group.leader.heartbeat()
    group.outsider.leave(members=[{"member_id": asked.member_id, "group_instance_id": None}])
    group.leader.heartbeat()
    group.outsider.describe()


@scenario()
def giving_an_id_back_with_an_instance_id(s: Script) -> None:
    group = stable_group(s, instances=[None, "i"])
    asked = group.outsider.join()
    group.outsider.leave(members=[{"member_id": asked.member_id, "group_instance_id": "i"}])
    group.outsider.leave(members=[{"member_id": asked.member_id, "group_instance_id": "j"}])
    group.outsider.describe()


@scenario()
def a_rebalance_waits_for_ids_that_were_given_out(s: Script) -> None:
    group = stable_group(s)
    c = group.outsider
    asked = c.join()
    leader = group.leader.rejoin()
    s.until(PREPARING)
    follower = group.follower.rejoin()
    follower.is_silent()
    newcomer = c.send_join(member_id=asked.member_id)
    newcomer.reply()
    leader.reply()
    follower.reply()


@scenario()
def a_rebalance_goes_on_without_an_id_that_is_given_back(s: Script) -> None:
    group = stable_group(s)
    c = group.outsider
    asked = c.join()
    leader = group.leader.rejoin()
    s.until(PREPARING)
    follower = group.follower.rejoin()
    follower.is_silent()
    c.leave(members=[{"member_id": asked.member_id, "group_instance_id": None}])
    leader.reply()
    follower.reply()


# --- joins that wait


@scenario()
def a_second_join_takes_the_place_of_the_first(s: Script) -> None:
    group = stable_group(s)
    first = group.leader.rejoin()
    s.until(PREPARING)
    first.is_silent()
    _second_join(s, group, first)


@scenario()
def a_second_join_with_other_metadata_counts(s: Script) -> None:
    group = stable_group(s)
    first = group.leader.rejoin()
    s.until(PREPARING)
    _second_join(s, group, first, protocols=protocols("range", metadata=OTHER_METADATA))


def _second_join(s: Script, group: Group, first: Pending, **changes: Any) -> None:
    """The leader joins again on another connection: that one is answered, and `first` never is."""
    second = s.connect().send_join(member_id=group.leader.id, **changes)
    second.is_silent()
    group.follower.rejoin().reply()
    second.reply()
    first.is_silent()


@scenario()
def a_waiting_join_that_is_taken_out(s: Script) -> None:
    group = stable_group(s)
    waiting = group.leader.rejoin()
    s.until(PREPARING)
    group.outsider.leave(members=[group.leader.identity])
    waiting.reply()
    group.outsider.describe()
    group.follower.rejoin().reply()


@scenario(version={"v3": 3, "v6": 6, "v7": 7})
def a_waiting_join_that_is_taken_out_of_each_version(s: Script, version: int) -> None:
    group = stable_group(s)
    waiting = group.leader.link.send_join(version, member_id=group.leader.id)
    s.until(PREPARING)
    group.outsider.leave(members=[group.leader.identity])
    waiting.reply()


@scenario()
def a_newcomer_who_is_taken_out(s: Script) -> None:
    group = stable_group(s)
    c = group.outsider
    asked = c.join()
    waiting = c.send_join(member_id=asked.member_id)
    s.until(PREPARING, members=3)
    group.leader.link.leave(members=[{"member_id": asked.member_id, "group_instance_id": None}])
    waiting.reply()
    group.leader.heartbeat()
    c.describe()


@scenario()
def a_join_whose_connection_drops_takes_part(s: Script) -> None:
    group = stable_group(s)
    c = s.connect("gone")
    asked = c.join()
    c.send_join(member_id=asked.member_id)
    s.until(PREPARING, members=3)
    c.hang_up()
    follower = group.follower.rejoin()
    follower.is_silent()
    group.leader.rejoin().reply()
    follower.reply()


@scenario(slow=True)
def who_does_not_come_back_is_left_out(s: Script) -> None:
    group = stable_group(s, size=3, rebalance_timeout_ms=3_000)
    one, two, _ = group.members
    answer = one.rejoin(rebalance_timeout_ms=3_000)
    s.until(PREPARING)
    two.rejoin(rebalance_timeout_ms=3_000).reply()
    answer.reply()
    group.members[2].heartbeat()
    group.members[2].rejoin().reply()


@scenario(slow=True)
def a_leader_who_does_not_come_back_is_followed_by_another(s: Script) -> None:
    group = stable_group(s, rebalance_timeout_ms=3_000)
    other = protocols("range", metadata=OTHER_METADATA)
    group.follower.rejoin(rebalance_timeout_ms=3_000, protocols=other).reply()
    group.leader.heartbeat()
    group.outsider.describe()


@scenario(slow=True)
def the_longest_rebalance_timeout_counts(s: Script) -> None:
    group = stable_group(s, rebalance_timeout_ms=3_000)
    c = s.connect()
    with s.quietly():
        patient = first_join(c, rebalance_timeout_ms=60_000)
        s.until(PREPARING, members=3)
    first = group.leader.rejoin(rebalance_timeout_ms=3_000)
    s.settle()
    first.is_silent()
    group.follower.rejoin(rebalance_timeout_ms=3_000).reply()
    first.reply()
    patient.reply()


# --- generations


@scenario()
def generations_go_on_after_everybody_has_left(s: Script) -> None:
    group = stable_group(s, size=1)
    group.leader.leave()
    joined = group.outsider.join(3)
    group.outsider.leave(members=[{"member_id": joined.member_id, "group_instance_id": None}])
    joined = group.outsider.join(3, protocol_type="another", protocols=protocols("p"))
    group.outsider.sync(4, member_id=joined.member_id, generation_id=joined.generation_id)
    group.outsider.describe()


@scenario()
def generations_start_again_after_a_deletion(s: Script) -> None:
    group = stable_group(s, size=1)
    group.leader.leave()
    group.outsider.delete_groups()
    group.outsider.join(3)


@scenario(differs="refused-joins-leave-no-group")
def a_refused_join_of_a_new_group(s: Script) -> None:
    a = s.connect()
    a.join(protocols=[])
    a.describe()
    a.list_groups()
