# SPDX-License-Identifier: Apache-2.0
"""The scenarios of prepared requests: commits, heartbeats, fetches and a mix of them."""

import math
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from bench.cluster import Address, Cluster
from bench.dialect import Member, Topic, nobody
from bench.load import Lane, Prepared, Repeat
from bench.wire import Call

TOPIC: Final = "bench"
PARTITIONS: Final = 100  # of the topic


@dataclass(frozen=True, slots=True)
class Shape:
    """What a scenario sends. `heartbeats`, `commits` and `fetches` are shares of the requests."""

    connections: int = 16
    depth: int = 8
    groups: int = 100
    partitions: int = 1  # in each commit and fetch
    heartbeats: int = 0
    commits: int = 0
    fetches: int = 0

    def changed(self, changes: Mapping[str, int | None]) -> "Shape":
        """The same with other numbers; None changes nothing."""
        return replace(self, **{name: value for name, value in changes.items() if value is not None})


SHAPES: Final[Mapping[str, Shape]] = {
    "commit": Shape(commits=1),
    "commit_1x1": Shape(commits=1, connections=1, depth=1),
    "commit_128x1": Shape(commits=1, connections=128, depth=1, groups=128),
    "commit_p100": Shape(commits=1, partitions=100),
    "heartbeat": Shape(heartbeats=1),
    "fetch": Shape(fetches=1),
    "fetch_p100": Shape(fetches=1, partitions=100),
    "mixed": Shape(heartbeats=90, commits=10),
}


@dataclass(slots=True)
class Stage:
    """A server brought to where a scenario starts: groups with offsets, and members where they are needed."""

    cluster: Cluster
    topic: Topic
    groups: list[str]
    members: list[Member]
    lanes: list[Lane]

    def clear(self) -> None:
        """Take the members and groups away again. Raises OSError and BadReply."""
        self.cluster.leave_all(self.members)
        self.cluster.delete_groups(self.groups)


def unique_prefix(prefix: str, scenario: str) -> str:
    """A beginning for group names that no earlier run used."""
    return f"{prefix}-{scenario}-{time.time_ns() // 1_000_000:x}"


def set_stage(
    cluster: Cluster, scenario: str, shape: Shape, *, prefix: str = "bench", limit: int | None = None
) -> Stage:
    """Prepare a scenario; `limit` bounds the requests of all lanes together. Raises Unprepared."""
    topic = cluster.ensure_topic(TOPIC, max(PARTITIONS, shape.partitions))
    start = unique_prefix(prefix, scenario)
    groups = [f"{start}-{number:05d}" for number in range(shape.groups)]
    cluster.wait_until_served(groups, topic)
    offsets = {group: offsets_of(number, shape.partitions) for number, group in enumerate(groups)}
    cluster.commit_all(topic, offsets)
    members = cluster.join_all(topic, groups) if shape.heartbeats else []
    identities = members or [nobody(group) for group in groups]
    parts = share_out(cluster.look_up_coordinators(groups), shape.connections)
    each = None if limit is None else math.ceil(limit / len(parts))
    by_group = {identity.group: identity for identity in identities}
    lanes: list[Lane] = []
    for address, mine in parts:
        sequence = [
            request
            for group in mine
            for request in _requests(cluster, topic, shape, by_group[group], offsets[group])
        ]
        random.Random(len(lanes)).shuffle(sequence)  # the same in every run
        lanes.append(Lane(address, Repeat(sequence, each)))
    return Stage(cluster, topic, groups, members, lanes)


def offsets_of(group_number: int, partitions: int) -> dict[int, int]:
    """The offsets that a group's preparation commits: different ones, so that a mix-up is seen."""
    return {partition: group_number * 1_000 + partition for partition in range(partitions)}


def share_out(coordinators: Mapping[str, Address], connections: int) -> list[tuple[Address, list[str]]]:
    """Deal the groups to connections: each coordinator gets connections in proportion to its groups.

    Every coordinator gets at least one; with fewer groups than connections, some share a group.
    """
    by_address: dict[Address, list[str]] = {}
    for group, address in coordinators.items():
        by_address.setdefault(address, []).append(group)
    parts = []
    for address, groups in by_address.items():
        count = max(1, round(connections * len(groups) / len(coordinators)))
        parts += [(address, groups[i::count] or [groups[i % len(groups)]]) for i in range(count)]
    return parts


def _requests(
    cluster: Cluster, topic: Topic, shape: Shape, member: Member, offsets: Mapping[int, int]
) -> list[Prepared]:
    """A group's share of a lane's sequence: each kind as often as the shape says, in lowest terms."""
    dialect = cluster.dialect
    smallest = math.gcd(shape.heartbeats, shape.commits, shape.fetches)
    chosen: list[Prepared] = []
    if shape.heartbeats:
        call = dialect.heartbeat(member)
        chosen += [Prepared(call.frame, partial(_check_heartbeat, call))] * (shape.heartbeats // smallest)
    if shape.commits:
        call = dialect.commit(topic, member, offsets)
        judge = partial(dialect.check_commit, topic, list(offsets))
        chosen += [Prepared(call.frame, judge)] * (shape.commits // smallest)
    if shape.fetches:
        call = dialect.fetch(topic, member.group, list(offsets))
        judge = partial(dialect.check_fetch, topic, member.group, offsets)
        chosen += [Prepared(call.frame, judge)] * (shape.fetches // smallest)
    return chosen


def _check_heartbeat(call: Call, reply: bytes) -> None:
    call.decode_good(reply)
