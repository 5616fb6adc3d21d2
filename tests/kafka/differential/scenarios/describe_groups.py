# SPDX-License-Identifier: Apache-2.0
"""DescribeGroups: every state as it is shown, unknown groups, and authorized operations."""

from protocol.apis import ApiKey
from tests.kafka.differential.catalogue import every, scenario
from tests.kafka.differential.groups import IN_STATE, stable_group
from tests.kafka.differential.ordinary import protocols
from tests.kafka.differential.scenarios.join_group import State
from tests.kafka.differential.script import Script

DESCRIBE = ApiKey.DESCRIBE_GROUPS


@scenario(version=every(DESCRIBE), state=IN_STATE)
def in_each_state(s: Script, version: int, state: State) -> None:
    group = state(s, instances=["i", None])
    group.outsider.describe(version)


@scenario(version=every(DESCRIBE))
def groups_that_do_not_exist(s: Script, version: int) -> None:
    a = s.connect()
    a.describe(version, groups=[s.id("none")])
    a.describe(version, groups=[])


@scenario(version=every(DESCRIBE, since=3))
def authorized_operations(s: Script, version: int) -> None:
    group = stable_group(s, size=1)
    c = group.outsider
    for asked in (False, True):
        c.describe(version, include_authorized_operations=asked)
        c.describe(version, groups=[s.id("none"), s.group], include_authorized_operations=asked)


@scenario(version=every(DESCRIBE))
def several_groups(s: Script, version: int) -> None:
    stable_group(s, size=1)
    a = s.connect()
    a.commit(group_id=s.id("h"))
    a.describe(version, groups=[s.id("h"), s.id("none"), s.group, s.group, s.id("h")])


@scenario()
def a_group_of_offsets_only(s: Script) -> None:
    a = s.connect()
    a.commit()
    a.describe()


@scenario()
def a_group_of_given_out_ids_only(s: Script) -> None:
    a = s.connect()
    a.join()
    a.describe()


@scenario()
def members_with_different_metadata(s: Script) -> None:
    a = s.connect("one")
    offers = [*protocols("x", metadata=b"for x"), *protocols("y", metadata=b"for y")]
    joined = a.join(3, protocol_type="other", protocols=offers)
    a.describe()
    a.sync(
        4, member_id=joined.member_id, assignments=[{"member_id": joined.member_id, "assignment": b"part"}]
    )
    a.describe()


@scenario(differs="order-of-groups")
def the_order_of_groups(s: Script) -> None:
    a = s.connect()
    a.describe(groups=[s.id(name) for name in "abcdefgh"], as_it_comes=True)
