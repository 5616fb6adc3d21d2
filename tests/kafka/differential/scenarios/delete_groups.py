# SPDX-License-Identifier: Apache-2.0
"""DeleteGroups: of groups that are done, in use, or not there."""

from protocol.apis import ApiKey
from tests.kafka.differential.catalogue import every, scenario
from tests.kafka.differential.groups import IN_STATE, empty_group, stable_group
from tests.kafka.differential.ordinary import fetch_group
from tests.kafka.differential.scenarios.join_group import State
from tests.kafka.differential.scenarios.offset_fetch import have_offsets
from tests.kafka.differential.script import Script

DELETE = ApiKey.DELETE_GROUPS


@scenario(version=every(DELETE), state=IN_STATE)
def in_each_state(s: Script, version: int, state: State) -> None:
    group = state(s)
    group.outsider.delete_groups(version)
    group.outsider.describe()


@scenario(version=every(DELETE))
def several_groups(s: Script, version: int) -> None:
    stable_group(s, size=1)
    a = s.connect()
    a.commit(group_id=s.id("h"))
    a.delete_groups(version, groups_names=[s.id("none"), s.id("h"), s.group, s.id("h"), s.id("none")])
    a.delete_groups(version, groups_names=[])
    a.delete_groups(version, groups_names=[s.group, s.group])


@scenario()
def with_offsets(s: Script) -> None:
    a = have_offsets(s)
    a.delete_groups()
    a.fetch_offsets(groups=[fetch_group(s.group, None)])
    a.describe()
    a.list_groups()
    a.delete_groups()


@scenario()
def of_given_out_ids_only(s: Script) -> None:
    a = s.connect()
    asked = a.join()
    a.delete_groups()
    a.join(member_id=asked.member_id)
    a.describe()


@scenario()
def a_group_comes_back(s: Script) -> None:
    group = empty_group(s)
    c = group.outsider
    c.delete_groups()
    group.leader.heartbeat()
    group.leader.commit()
    c.join(member_id=group.leader.id)
    c.join(3)
    c.describe()


@scenario()
def a_commit_brings_a_group_back(s: Script) -> None:
    group = empty_group(s)
    c = group.outsider
    c.delete_groups()
    c.commit()
    c.describe()
    c.fetch_offsets(groups=[fetch_group(s.group, None)])


@scenario()
def a_group_that_is_emptied_and_deleted(s: Script) -> None:
    group = stable_group(s)
    group.leader.leave()
    group.outsider.delete_groups()
    group.follower.leave()
    group.outsider.delete_groups()
    group.outsider.delete_groups()


@scenario(differs="order-of-groups")
def the_order_of_groups(s: Script) -> None:
    a = s.connect()
    a.delete_groups(groups_names=[s.id(name) for name in "abcdefgh"], as_it_comes=True)
