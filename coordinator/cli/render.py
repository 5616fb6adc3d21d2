# SPDX-License-Identifier: Apache-2.0
"""How the commands print what they found: tables for people, JSON for programs."""

import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from coordinator.cli.model import Assignment, Description, GroupListing, Member, OffsetView, StateView
from coordinator.telemetry.escaping import escape_unseen
from coordinator.workers.orders import Answer

WIDTH_WITHOUT_TERMINAL: Final = 100_000
"""A pipe has no width: nothing is wrapped, so that grep and awk see whole lines."""
ABSENT: Final = "-"


def print_json(found: object) -> None:
    """Print one JSON document."""
    text = msgspec.json.format(msgspec.json.encode(found), indent=2).decode()
    sys.stdout.write(escape_unseen(text) + "\n")


def print_groups(groups: Sequence[GroupListing]) -> None:
    """Print the table of `groups list`."""
    if not groups:
        sys.stderr.write("no groups\n")
        return
    rows = [(g.group, g.state, g.type, g.protocol_type) for g in groups]
    print_table(["GROUP", "STATE", "TYPE", "PROTOCOL TYPE"], rows)


def print_description(description: Description) -> None:
    """Print a table for each part of `groups describe` that there is."""
    if description.state is not None:
        _print_state(description.group, description.state)
    if description.members is not None:
        _gap(description.state is not None)
        _print_members(description.members)
    if description.offsets is not None:
        _gap(description.state is not None or description.members is not None)
        _print_offsets(description.offsets)


def print_set_offsets(offsets: Mapping[tuple[str, int], tuple[int | None, int]]) -> None:
    """Print the table of `groups set-offsets`: by topic and partition, the offset before and the one that is set."""
    rows = [(topic, partition, *of) for (topic, partition), of in sorted(offsets.items())]
    if rows:
        print_table(["TOPIC", "PARTITION", "BEFORE", "OFFSET"], rows)


def print_partitions(answer: Answer) -> None:
    """Print the tables of `partitions list`."""
    led = Counter(state.leader for state in answer.partitions)
    nodes = [(n.node, n.state, n.address, led[n.node], n.restarts, n.pid) for n in answer.nodes]
    print_table(["NODE", "STATE", "ADDRESS", "PARTITIONS", "RESTARTS", "PID"], nodes)
    _gap(True)
    rows = [
        (p.partition, p.leader if p.leader >= 0 else None, p.leader_epoch, p.state, p.reason)
        for p in answer.partitions
    ]
    print_table(["PARTITION", "LEADER", "EPOCH", "STATE", "REASON"], rows)


def _print_state(group: str, state: StateView) -> None:
    coordinator = f"{state.coordinator} (node {state.coordinator_id})"
    row = (group, state.state, state.members, state.protocol_type, state.protocol, coordinator)
    print_table(["GROUP", "STATE", "MEMBERS", "PROTOCOL TYPE", "PROTOCOL", "COORDINATOR"], [row])


def _print_members(members: Sequence[Member]) -> None:
    if not members:
        sys.stdout.write("no members\n")
        return
    rows = [
        (
            m.member_id,
            m.group_instance_id,
            m.client_id,
            m.client_host,
            sum(len(a.partitions) for a in m.assignment),
            assignment_text(m.assignment),
        )
        for m in members
    ]
    print_table(["MEMBER", "INSTANCE", "CLIENT", "HOST", "PARTITIONS", "ASSIGNMENT"], rows)


def _print_offsets(offsets: Sequence[OffsetView]) -> None:
    if not offsets:
        sys.stdout.write("no offsets\n")
        return
    rows = [(o.topic, o.partition, o.offset, o.metadata, o.member_id, o.client_host) for o in offsets]
    print_table(["TOPIC", "PARTITION", "OFFSET", "METADATA", "MEMBER", "HOST"], rows)


def assignment_text(assignment: Iterable[Assignment]) -> str:
    """Partitions as ranges: `orders 0-3,7; payments 1`."""
    return "; ".join(f"{a.topic} {_ranges(a.partitions)}" for a in assignment)


def _ranges(partitions: Sequence[int]) -> str:
    numbers = sorted(partitions)
    if not numbers:
        return ABSENT
    starts = [numbers[0], *(b for a, b in pairwise(numbers) if b != a + 1)]
    ends = [*(a for a, b in pairwise(numbers) if b != a + 1), numbers[-1]]
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in zip(starts, ends, strict=True))


def _gap(wanted: bool) -> None:
    if wanted:
        sys.stdout.write("\n")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str | int | None]]) -> None:
    """Print rows below their columns' names, without lines between them."""
    terminal = sys.stdout.isatty()
    console = Console(file=sys.stdout, width=None if terminal else WIDTH_WITHOUT_TERMINAL)
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 3, 0, 0))
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*map(_cell, row))
    console.print(table)


def _cell(value: str | int | None) -> Text:
    """The value as text: not as rich's markup, and what clients chose without control characters."""
    text = ABSENT if value is None or value == "" else str(value)
    return Text(text if text.isprintable() else text.encode("unicode_escape").decode())
