# SPDX-License-Identifier: Apache-2.0
"""Prints groups as tables for people."""

import sys
from collections.abc import Iterable, Sequence
from itertools import pairwise

from coordinator.cli.cluster.model import AssignedTopic, GroupDescription, GroupListing, Member
from coordinator.cli.render import ABSENT, Cell, print_table

Row = tuple[Cell, ...]


def print_groups(groups: Sequence[GroupListing]) -> None:
    """Print the table of `groups list`."""
    if not groups:
        sys.stderr.write("no groups\n")
        return
    rows = [(g.group, g.state, g.type, g.protocol_type) for g in groups]
    print_table(["GROUP", "STATE", "TYPE", "PROTOCOL TYPE"], rows)


def print_descriptions(descriptions: Sequence[GroupDescription]) -> None:
    """Print a table for each part that there is; with several groups, each row begins with the group."""
    several = len(descriptions) != 1
    states = [_state(each) for each in descriptions if each.state is not None]
    members = [(each.group, *_member(m)) for each in descriptions for m in each.members or ()]
    offsets = [row for each in descriptions for row in _offsets(each)]
    topics = [(each.group, t.topic, t.committed, t.lag) for each in descriptions for t in each.topics or ()]
    is_first = True
    for is_wanted, columns, rows, none in (
        (bool(states), _STATE, states, ""),
        (any(each.members is not None for each in descriptions), _MEMBER, members, "no members"),
        (any(each.offsets is not None for each in descriptions), _OFFSET, offsets, "no offsets"),
        (any(each.topics is not None for each in descriptions), _TOPIC, topics, "no offsets"),
    ):
        if is_wanted:
            sys.stdout.write("" if is_first else "\n")
            _print(columns, rows, 0 if several or columns is _STATE else 1, none)
            is_first = False


def _print(columns: Sequence[str], rows: Sequence[Row], first: int, none: str) -> None:
    if not rows:
        sys.stdout.write(f"{none}\n")
        return
    rare = _RARE | {"LAG"} if columns is _STATE else _RARE
    wanted = [
        at
        for at in range(first, len(columns))
        if columns[at] not in rare or any(row[at] not in (None, "") for row in rows)
    ]
    print_table([columns[at] for at in wanted], [[row[at] for at in wanted] for row in rows])


_STATE = ["GROUP", "STATE", "MEMBERS", "TYPE", "PROTOCOL TYPE", "PROTOCOL", "LAG", "COORDINATOR"]
_MEMBER = [
    "GROUP",
    "MEMBER",
    "INSTANCE",
    "CLIENT",
    "HOST",
    "EPOCH",
    "TYPE",
    "PARTITIONS",
    "ASSIGNMENT",
    "TARGET",
]
_OFFSET = ["GROUP", "TOPIC", "PARTITION", "OFFSET", "END", "LAG", "MEMBER", "CLIENT", "HOST", "METADATA"]
_TOPIC = ["GROUP", "TOPIC", "COMMITTED PARTITIONS", "LAG"]
_RARE = frozenset({"EPOCH", "TYPE", "TARGET", "METADATA"})
"""The columns that are left out if no row has a value in them."""


def _state(described: GroupDescription) -> Row:
    state = described.state
    assert state is not None
    coordinator = f"{state.coordinator} (node {state.coordinator_id})"
    row = (described.group, state.state, state.members, state.type, state.protocol_type, state.protocol)
    return (*row, state.lag, coordinator)


def _member(member: Member) -> Row:
    is_classic = member.is_classic
    return (
        member.member_id,
        member.group_instance_id,
        member.client_id,
        member.client_host,
        member.epoch,
        None if is_classic is None else "classic" if is_classic else "consumer",
        sum(len(each.partitions) for each in member.assignment),
        assignment_text(member.assignment),
        assignment_text(member.target) if member.target is not None else None,
    )


def _offsets(described: GroupDescription) -> list[Row]:
    return [
        (
            described.group,
            o.topic,
            o.partition,
            o.offset,
            o.end,
            o.lag,
            o.member_id,
            o.client_id,
            o.client_host,
            o.metadata,
        )
        for o in described.offsets or ()
    ]


def assignment_text(assignment: Iterable[AssignedTopic]) -> str:
    """Return partitions as ranges: `orders 0-3,7; payments 1`."""
    return "; ".join(f"{a.topic} {_ranges(a.partitions)}" for a in assignment)


def _ranges(partitions: Sequence[int]) -> str:
    numbers = sorted(partitions)
    if not numbers:
        return ABSENT
    starts = [numbers[0], *(b for a, b in pairwise(numbers) if b != a + 1)]
    ends = [*(a for a, b in pairwise(numbers) if b != a + 1), numbers[-1]]
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in zip(starts, ends, strict=True))
