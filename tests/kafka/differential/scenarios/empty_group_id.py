# SPDX-License-Identifier: Apache-2.0
"""The group whose id is empty: it can have offsets, and most APIs refuse its id before they look for it."""

from protocol.apis import ApiKey
from tests.kafka.differential.catalogue import ALONE, every, scenario
from tests.kafka.differential.ordinary import fetch_group, fetch_topic
from tests.kafka.differential.scenarios.leave_group import leaving
from tests.kafka.differential.scenarios.offset_fetch import asking
from tests.kafka.differential.script import Script


@scenario(settings=ALONE)
def it_comes_and_goes(s: Script) -> None:
    a = s.connect()
    for api in (a.heartbeat, a.join, a.sync, a.leave, a.delete_offsets):
        api(group_id="")
    a.describe(groups=[""])
    a.delete_groups(groups_names=["", ""])
    a.commit(group_id="")
    a.fetch_offsets(groups=[fetch_group("", None)])
    a.describe(groups=[""])
    a.delete_offsets(group_id="")
    a.delete_offsets(group_id="", topics=[])
    a.delete_groups(groups_names=[""])
    a.describe(groups=[""])
    a.fetch_offsets(groups=[fetch_group("", None)])
    a.commit(group_id="", generation_id_or_member_epoch=0)


@scenario(settings=ALONE)
def requests_while_it_has_offsets(s: Script) -> None:
    a = s.connect()
    for version in every(ApiKey.OFFSET_COMMIT).values():
        a.commit(version, group_id="")
        a.commit(version, group_id="", generation_id_or_member_epoch=1, member_id="nobody")
    for version in every(ApiKey.JOIN_GROUP).values():
        a.join(version, group_id="")
        a.join(version, group_id="", member_id="nobody")
    for version in every(ApiKey.SYNC_GROUP).values():
        a.sync(version, group_id="")
        a.sync(version, group_id="", member_id="nobody")
    for version in every(ApiKey.HEARTBEAT).values():
        a.heartbeat(version, group_id="", generation_id=-1)
        a.heartbeat(version, group_id="", generation_id=0, member_id="nobody")
    for version in every(ApiKey.LEAVE_GROUP, until=2).values():
        a.leave(version, group_id="", member_id="nobody")
    for version in every(ApiKey.LEAVE_GROUP, since=3).values():
        a.leave(version, group_id="", members=[leaving("nobody"), leaving("", "i")])
    for version in every(ApiKey.OFFSET_FETCH).values():
        a.fetch_offsets(version, **asking(s, version, [fetch_topic(s, "apples", 0)], ""))
    for version in every(ApiKey.DESCRIBE_GROUPS).values():
        a.describe(version, groups=[""])
    a.delete_offsets(group_id="", topics=[])
    for version in every(ApiKey.DELETE_GROUPS).values():
        a.delete_groups(version, groups_names=[""])
        a.describe(groups=[""])
        a.commit(group_id="")
    a.delete_groups(groups_names=[""])
