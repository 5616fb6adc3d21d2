# SPDX-License-Identifier: Apache-2.0
"""ListGroups: the filters by state and by type, and how they may be spelled."""

from protocol.apis import ApiKey
from tests.kafka.differential.catalogue import every, scenario
from tests.kafka.differential.groups import IN_STATE, stable_group
from tests.kafka.differential.ordinary import protocols
from tests.kafka.differential.scenarios.join_group import State
from tests.kafka.differential.script import Script

LIST = ApiKey.LIST_GROUPS


def have_groups(s: Script) -> None:
    """A group in every state, and others without members."""
    with s.quietly():
        for name, make in IN_STATE.items():
            make(s, size=2, group_id=s.id(name))
        a = s.connect()
        a.commit(group_id=s.id("offsets only"))
        a.join(group_id=s.id("given out ids only"))
        a.join(3, group_id=s.id("connectors"), protocol_type="connect", protocols=protocols("p"))
    s.note("a group in every state, one of offsets, one of given out ids and one of connectors")


@scenario(version=every(LIST))
def without_filters(s: Script, version: int) -> None:
    have_groups(s)
    s.connect().list_groups(version)


@scenario(version=every(LIST, since=4))
def by_state(s: Script, version: int) -> None:
    have_groups(s)
    a = s.connect()
    for state in IN_STATE:
        a.list_groups(version, states_filter=[state])
    a.list_groups(version, states_filter=["Stable", "Empty"])


@scenario(
    states={
        "upper": ["STABLE"],
        "lower": ["preparingrebalance"],
        "mixed": ["cOmpletingREBALANCE"],
        "with underscores": ["PREPARING_REBALANCE"],
        "with blanks around": [" Stable "],
        "with a blank inside": ["Preparing Rebalance"],
        "unknown": ["Nonsense"],
        "unknown and known": ["Nonsense", "Empty"],
        "empty": [""],
        "empty and known": ["", "Empty"],
        "twice": ["Empty", "Empty"],
        "of the new protocol": ["Assigning", "Reconciling"],
        "not yet ready": ["NotReady"],
        "dead": ["Dead"],
        "unknown itself": ["Unknown"],
    }
)
def spellings_of_states(s: Script, states: list[str]) -> None:
    have_groups(s)
    s.connect().list_groups(states_filter=states)


@scenario(
    types={
        "classic": ["classic"],
        "capital": ["Classic"],
        "upper": ["CLASSIC"],
        "with blanks": [" classic "],
        "consumer": ["consumer"],
        "share": ["share"],
        "streams": ["streams"],
        "two": ["consumer", "classic"],
        "unknown": ["nonsense"],
        "unknown and known": ["nonsense", "classic"],
        "the unknown type": ["unknown"],
        "empty": [""],
        "twice": ["classic", "classic"],
    }
)
def spellings_of_types(s: Script, types: list[str]) -> None:
    have_groups(s)
    s.connect().list_groups(types_filter=types)


@scenario(
    filters={
        "both fit": (["Stable"], ["classic"]),
        "the state fits": (["Stable"], ["consumer"]),
        "the type fits": (["Dead"], ["classic"]),
    }
)
def by_state_and_type(s: Script, filters: tuple[list[str], list[str]]) -> None:
    have_groups(s)
    s.connect().list_groups(states_filter=filters[0], types_filter=filters[1])


@scenario(state=IN_STATE)
def in_each_state(s: Script, state: State) -> None:
    group = state(s)
    group.outsider.list_groups()


@scenario()
def a_deleted_group(s: Script) -> None:
    group = stable_group(s, size=1)
    group.leader.leave()
    group.outsider.list_groups()
    group.outsider.delete_groups()
    group.outsider.list_groups()
