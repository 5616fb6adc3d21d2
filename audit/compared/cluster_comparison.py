# SPDX-License-Identifier: Apache-2.0
"""Compares the state in the log with the state that the running coordinators report.

The cluster is asked before the log is read, and after. A report that is the same both times has to equal the log, for
the log was read in between. A difference is checked once more, a moment later: a node's acknowledged records can be
some tenths of a second on their way into the segments. Changes between the two reports are kept apart; if the state
changes while the log stands still, that is a difference.
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final, Literal

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from audit.checks.offset_group_joins import NO_LEDGER
from audit.compared import QUOTED_CHARS_MAX
from audit.compared.live_state_reader import LiveGroup, LiveOffset, LiveState, OffsetKey
from audit.facts.inventory import LogInventory
from audit.facts.log_facts import Facts
from audit.options import AuditOptions
from audit.schema import local_table
from protocol.newtypes import GroupId
from protocol.placement import partition_for

PAUSE_S: Final = 2.0
"""The seconds to wait: longer than write-behind takes to bring acknowledged records into a segment."""
LOOKED_AT_AGAIN: Final = 500
"""The limit of groups that are checked again; if more differ, there is a bigger problem."""
REBALANCING: Final = ("PreparingRebalance", "CompletingRebalance")

_LIVE: Final = pa.schema(
    [
        ("group", pa.string()),
        ("topic", pa.string()),
        ("topic_partition", pa.int32()),
        ("live_offset", pa.int64()),
        ("live_epoch", pa.int32()),
        ("live_metadata", pa.string()),
    ]
)

Kind = Literal["differs", "meanwhile", "stuck"]
Place = tuple[int | None, str | None, int | None]
"""The partition, file and position of a record in the log."""
Ask = Callable[[Collection[str] | None], LiveState]
Gather = Callable[[SparkSession, AuditOptions, LogInventory], Facts]
"""The function that reads a log: `audit.run.reading.read_facts`."""


class LoggedOffset(msgspec.Struct, frozen=True):
    """The newest record of one key in the log, and its place."""

    value: LiveOffset
    partition: int
    file: str
    position: int


class LoggedGroup(msgspec.Struct, frozen=True):
    """One group in the log; `state` is None if the log has only its offsets."""

    state: str | None
    protocol_type: str | None
    members: frozenset[str]
    partition: int
    file: str
    position: int


class LoggedState(msgspec.Struct, frozen=True):
    """The log's state of the groups that have to be compared."""

    offsets: Mapping[OffsetKey, LoggedOffset]
    groups: Mapping[str, LoggedGroup]
    others: frozenset[str]


class Difference(msgspec.Struct, frozen=True):
    """One difference between the log and the cluster.

    By its `kind` the states differ, the cluster's state changed meanwhile, or a group is stuck in a rebalance.
    """

    kind: Kind
    group: str
    message: str
    place: Place = (None, None, None)
    key: OffsetKey | None = None
    logged: LiveOffset | None = None
    known: bool = True
    """True if the log's value is the one that the cluster reported at one of the two times."""


def compare_with_live_cluster(facts: Facts, before: LiveState, ask: Ask, gather: Gather) -> list[Difference]:
    """Return the differences between the log and a cluster; `before` is its state before the log was read.

    `ask` reads the cluster's state again, and `gather` parts of the log.
    """
    after = ask(None)
    suspicious = _suspicious(facts, before, after)
    first = list(
        compare_log_with_cluster(
            read_logged_state(facts, suspicious), _only(before, suspicious), _only(after, suspicious)
        )
    )
    doubtful = {found.group for found in first if found.kind == "differs" or not found.known}
    again = set(sorted(doubtful)[:LOOKED_AT_AGAIN])
    if not again:
        return first
    time.sleep(PAUSE_S)
    looked = ask(again)
    time.sleep(PAUSE_S)
    second_log = read_logged_state(_narrowed(facts, again, gather), again, without_others=True)
    second = list(compare_log_with_cluster(second_log, looked, ask(again)))
    stood_still = _stood_still(first, second)
    settled = [found for found in first if found.group not in again]
    return settled + [
        msgspec.structs.replace(found, kind="differs") if found.key in stood_still else found
        for found in second
    ]


def _only(live: LiveState, groups: Collection[str]) -> LiveState:
    """Return a report with the offsets of these groups alone."""
    offsets = {key: value for key, value in live.offsets.items() if key[0] in groups}
    return msgspec.structs.replace(live, offsets=offsets)


def _stood_still(first: Collection[Difference], second: Collection[Difference]) -> set[OffsetKey]:
    """Return the keys that changed in the cluster both times, while the log kept one value, equal to neither."""
    earlier = {found.key: found.logged for found in first if found.key is not None and not found.known}
    return {
        found.key
        for found in second
        if found.key is not None
        and not found.known
        and found.key in earlier
        and earlier[found.key] == found.logged
    }


def _narrowed(facts: Facts, groups: Collection[str], gather: Gather) -> Facts:
    """Return the facts of the partitions that hold these groups, read again."""
    partitions = facts.inventory.infer_partition_count(facts.options.num_partitions)
    if partitions is None:
        return gather(facts.spark, facts.options, facts.inventory)
    homes = {partition_for(GroupId(group), partitions) for group in groups}
    directories = tuple(
        facts.inventory.directories[home] for home in sorted(homes) if home in facts.inventory.directories
    )
    if not directories:
        return facts
    options: AuditOptions = msgspec.structs.replace(
        facts.options, log_dirs=directories, num_partitions=partitions
    )
    return gather(facts.spark, options, facts.inventory)


def _suspicious(facts: Facts, before: LiveState, after: LiveState) -> set[str]:
    """Return the groups with any difference or change: found by Spark, so that no other groups are collected."""
    spark = facts.spark
    rows = [(*key, value.offset, value.leader_epoch, value.metadata) for key, value in after.offsets.items()]
    live = local_table(spark, _LIVE, rows)
    key = ["group", "topic", "topic_partition"]
    same = F.expr(
        "live_offset <=> committed_offset and live_epoch <=> leader_epoch"
        " and coalesce(live_metadata, '') = coalesce(metadata, '')"
    )
    log = facts.live_offsets.where(NO_LEDGER).select(*key, "committed_offset", "leader_epoch", "metadata")
    differing = live.join(log, key, "full_outer").where(~same).select("group").distinct()
    suspects = {row["group"] for row in differing.collect()}
    suspects |= {key[0] for key in before.offsets.keys() ^ after.offsets.keys()}
    suspects |= {key[0] for key, value in before.offsets.items() if after.offsets.get(key) != value}
    return suspects


def read_logged_state(facts: Facts, groups: Collection[str], *, without_others: bool = False) -> LoggedState:
    """Return the log's state: the offsets of `groups`, and all stored groups, or `without_others` only these.

    Groups in a partition where the cluster does not search for them are left out.
    """
    count = facts.inventory.infer_partition_count(facts.options.num_partitions)

    def is_looked_for(row: Row) -> bool:
        return count is None or partition_for(GroupId(row["group"]), count) == row["partition"]

    names = local_table(facts.spark, pa.schema([("group", pa.string())]), [(group,) for group in groups])

    def of(table: DataFrame) -> DataFrame:
        return table.join(names, "group", "left_semi")

    offsets = {
        (row["group"], row["topic"], row["topic_partition"]): LoggedOffset(
            LiveOffset(row["committed_offset"], row["leader_epoch"], row["metadata"] or ""),
            row["partition"],
            row["file"],
            row["last_position"],
        )
        for row in of(facts.live_offsets).collect()
        if is_looked_for(row)
    }
    found = {
        key[0]: LoggedGroup(None, None, frozenset(), value.partition, value.file, value.position)
        for key, value in offsets.items()
    }
    stored = of(facts.live_groups) if without_others else facts.live_groups
    for row in filter(is_looked_for, stored.collect()):
        members = frozenset(member["member_id"] for member in row["members"] or ())
        found[row["group"]] = LoggedGroup(
            row["state"], row["protocol_type"], members, row["partition"], row["file"], row["last_position"]
        )
    return LoggedState(offsets, found, frozenset(row["group"] for row in facts.other_groups.collect()))


def compare_log_with_cluster(log: LoggedState, before: LiveState, after: LiveState) -> Iterator[Difference]:
    """Yield the differences between the log and the cluster."""
    for name in sorted(log.groups.keys() | before.groups.keys() | after.groups.keys()):
        yield from _compare_group(name, log, before, after)
    for key in sorted(log.offsets.keys() | before.offsets.keys() | after.offsets.keys()):
        yield from _compare_offset(key, log.offsets.get(key), before.offsets.get(key), after.offsets.get(key))


def _compare_offset(
    key: OffsetKey, log: LoggedOffset | None, before: LiveOffset | None, after: LiveOffset | None
) -> Iterator[Difference]:
    value = None if log is None else log.value
    if value == before == after:
        return
    group, topic, partition = key
    place: Place = (None, None, None) if log is None else (log.partition, log.file, log.position)
    what = f"group {group!r}, {topic}-{partition}: the log has {_shown_value(value)}, the cluster {_shown_value(after)}"
    if before == after:
        yield Difference("differs", group, what, place, key, value, known=False)
    else:
        known = value in (before, after)
        yield Difference(
            "meanwhile", group, f"{what}, and {_shown_value(before)} before", place, key, value, known
        )


def _shown_value(value: LiveOffset | None) -> str:
    if value is None:
        return "nothing"
    more = f", {_quoted(value.metadata)}" if value.metadata else ""
    return f"{value.offset} (epoch {value.leader_epoch}{more})"


def _quoted(metadata: str) -> str:
    if len(metadata) <= QUOTED_CHARS_MAX:
        return repr(metadata)
    return f"{metadata[:QUOTED_CHARS_MAX]!r}... ({len(metadata)} characters)"


def _compare_group(name: str, log: LoggedState, before: LiveState, after: LiveState) -> Iterator[Difference]:
    stored, first, last = log.groups.get(name), before.groups.get(name), after.groups.get(name)
    if name in log.others or any(live is not None and not live.classic for live in (first, last)):
        return  # for groups of other protocols only the offsets are compared
    place: Place = (None, None, None) if stored is None else (stored.partition, stored.file, stored.position)
    if first != last:
        states = f"{_state(first)} and then {_state(last)}"
        yield Difference("meanwhile", name, f"group {name!r} changed: {states}", place)
    elif last is None:
        yield Difference("differs", name, f"the cluster has no group {name!r}, and the log has", place)
    elif last.state in REBALANCING:
        took_s = (after.ended_ms - before.started_ms) / 1000
        message = f"group {name!r} was in {last.state} at both looks, {took_s:.0f} s apart"
        yield Difference("stuck", name, message, place)
    else:
        wrong = _wrong(stored, last)
        if wrong is not None:
            yield Difference("differs", name, f"group {name!r}: {wrong}", place)


def _state(group: LiveGroup | None) -> str:
    return "not there" if group is None else f"{group.state} with {len(group.members or ())} members"


def _wrong(stored: LoggedGroup | None, live: LiveGroup) -> str | None:
    """Return the difference between a group in the log and a group that does not rebalance, or None."""
    if stored is None:
        # a group that was never synced is in no log
        return "the log does not have it" if live.state == "Stable" else None
    if stored.state is None:
        return (
            f"the cluster reports {live.state}, and the log has only offsets of it"
            if live.state == "Stable"
            else None
        )
    if live.state != stored.state:
        return f"the log has {stored.state}, the cluster {live.state}"
    if live.protocol_type != stored.protocol_type:
        return f"the log has protocol type {stored.protocol_type!r}, the cluster {live.protocol_type!r}"
    if live.members is not None and live.members != stored.members:
        return f"the log has {len(stored.members)} members, the cluster {len(live.members)}, and they are not the same"
    return None
