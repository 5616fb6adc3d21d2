# SPDX-License-Identifier: Apache-2.0
"""A monitor: one connection to each node that coordinates groups, which are asked side by side, and three polls."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any, Final, NamedTuple

from bench.cluster import Address, Cluster, Peer
from bench.dialect import Dialect, Topic
from bench.wire import BadReply, Call

TIMEOUT_S: Final = 120.0
EMPTY: Final = "Empty"


class Shape(NamedTuple):
    """What there is at the cluster: the offsets by partition are the same in each group."""

    topic: Topic
    groups: Sequence[str]
    offsets: Mapping[int, int]


Build = Callable[[Dialect, Shape, Sequence[str]], list[Call]]
Check = Callable[[Any, Shape], dict[str, bool]]


class Poll(NamedTuple):
    """One way to ask for groups: what a node gets one after the other, and whether an answer is right, by group."""

    name: str
    build: Build
    is_right: Check


class Polled(NamedTuple):
    """One poll of all groups."""

    began: float  # time.monotonic()
    ended: float
    requests: int

    @property
    def wall_ms(self) -> float:
        """From the first request to the last answer."""
        return (self.ended - self.began) * 1e3


def _described(message: Any, _: Shape) -> dict[str, bool]:
    return {each.group_id: (each.error_code, each.group_state) == (0, EMPTY) for each in message.groups}


def _fetched(message: Any, shape: Shape) -> dict[str, bool]:
    return {
        each.group_id: not each.error_code
        and [
            {part.partition_index: part.committed_offset for part in topic.partitions}
            for topic in each.topics
        ]
        == [shape.offsets]
        for each in message.groups
    }


def _each(dialect: Dialect, shape: Shape, groups: Sequence[str]) -> list[Call]:
    return [dialect.fetch(shape.topic, group, list(shape.offsets)) for group in groups]


POLLS: Final = (
    Poll(
        "DescribeGroups, all of a node", lambda dialect, _, some: [dialect.describe_groups(some)], _described
    ),
    Poll("OffsetFetch, all of a node", lambda dialect, _, some: [dialect.fetch_all(some)], _fetched),
    Poll("OffsetFetch of each group", _each, _fetched),
)


class Monitor:
    """What has a connection to each node."""

    def __init__(self, cluster: Cluster, shape: Shape, peers: Mapping[Address, Peer]) -> None:
        self._shape = shape
        self._parts = cluster.by_coordinator(shape.groups)
        self._peers = peers
        self._calls = {
            poll.name: {
                node: poll.build(cluster.dialect, shape, groups) for node, groups in self._parts.items()
            }
            for poll in POLLS
        }

    def poll(self, poll: Poll) -> Polled:
        """Ask each node, all at the same time, and check the answers. Raises OSError and BadReply."""
        calls = self._calls[poll.name]

        def ask(node: Address) -> list[bytes]:
            return [self._peers[node].ask(call) for call in calls[node]]

        with ThreadPoolExecutor(len(calls)) as threads:
            began = time.monotonic()
            replies = list(threads.map(ask, calls))
            ended = time.monotonic()
        for (node, asked), found in zip(calls.items(), replies, strict=True):
            right: dict[str, bool] = {}
            for call, reply in zip(asked, found, strict=True):
                right |= poll.is_right(call.decode_good(reply), self._shape)
            if right.keys() != set(self._parts[node]) or not all(right.values()):
                raise BadReply(
                    f"{poll.name}: {sum(right.values())} of {len(self._parts[node])} are right at {node}"
                )
        return Polled(began, ended, sum(map(len, calls.values())))


@contextmanager
def connected(bootstrap: Address, shape: Shape) -> Iterator[Monitor]:
    """A monitor with its connections. Raises Unprepared, OSError and BadReply."""
    with Cluster(bootstrap, timeout_s=TIMEOUT_S) as cluster, ExitStack() as stack:
        nodes = cluster.by_coordinator(shape.groups)
        yield Monitor(cluster, shape, {node: stack.enter_context(cluster.connect(node)) for node in nodes})
