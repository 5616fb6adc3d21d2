# SPDX-License-Identifier: Apache-2.0
"""Heartbeat: by version, and by id, instance id and generation in every state."""

from protocol.apis import ApiKey
from tests.kafka.differential.catalogue import every, scenario
from tests.kafka.differential.groups import IN_STATE, first_join, stable_group
from tests.kafka.differential.scenarios.join_group import State
from tests.kafka.differential.script import Script

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1


@scenario(version=every(ApiKey.HEARTBEAT))
def in_each_version(s: Script, version: int) -> None:
    group = stable_group(s, instances=[None, "i"])
    group.leader.heartbeat(version=version)
    group.follower.heartbeat(version=version)
    group.leader.heartbeat(version=version, generation_id=1)
    group.outsider.heartbeat(version)
    group.outsider.heartbeat(version, group_id="")
    group.outsider.heartbeat(version, group_id=s.id("none"), member_id="nobody")
    group.outsider.heartbeat(version, member_id="nobody", group_instance_id="i", generation_id=2)


@scenario(state=IN_STATE)
def generations(s: Script, state: State) -> None:
    group = state(s, instances=["i", None])
    for generation in (INT32_MIN, -1, 0, 1, 2, 3, INT32_MAX):
        group.leader.heartbeat(generation_id=generation)
        group.follower.heartbeat(generation_id=generation)


@scenario(state=IN_STATE)
def ids(s: Script, state: State) -> None:
    group = state(s, instances=["i", None])
    for member_id in ("", "nobody", group.leader.id, group.follower.id):
        for instance_id in ("", "i", "j", None):
            for generation in (1, 2):
                group.outsider.heartbeat(
                    member_id=member_id, group_instance_id=instance_id, generation_id=generation
                )


@scenario()
def a_group_of_given_out_ids_only(s: Script) -> None:
    a = s.connect()
    asked = a.join()
    a.heartbeat(member_id=asked.member_id, generation_id=0)
    a.heartbeat(member_id="nobody", generation_id=0)


@scenario()
def a_group_of_offsets_only(s: Script) -> None:
    a = s.connect()
    a.commit()
    a.heartbeat(generation_id=-1)
    a.heartbeat(generation_id=0, member_id="nobody", group_instance_id="i")


@scenario()
def while_a_join_waits(s: Script) -> None:
    group = stable_group(s)
    waiting = first_join(s.connect())
    s.until("PreparingRebalance", members=3)
    group.leader.rejoin()
    s.settle()
    other = s.connect()
    other.heartbeat(**group.leader.current)
    waiting.is_silent()
