# SPDX-License-Identifier: Apache-2.0
"""Metrics of groups, their members and rebalances."""

from typing import Final

from coordinator.admin.reference.metric_help import (
    NOW,
    CounterHelp,
    GaugeHelp,
    HistogramHelp,
    Section,
    list_metric_help,
)

GROUPS: Final = GaugeHelp(
    "groupkeeper_groups",
    "Groups in memory, by state.",
    "groups",
    ("state",),
    since=NOW,
    elsewhere="`gcm` `group-count{protocol=classic}`; by state "
    "`kafka.coordinator.group:type=GroupMetadataManager,name=NumGroupsStable` and so on",
)
MEMBERS: Final = GaugeHelp("groupkeeper_members", "Members of all groups.", "members", since=NOW)
REBALANCES: Final = CounterHelp(
    "groupkeeper_rebalances_total",
    "Rebalances begun, by cause.",
    "rebalances",
    ("cause",),
    elsewhere="`gcm` `group-completed-rebalance-count` (completed ones)",
)
REBALANCE_DURATION: Final = HistogramHelp(
    "groupkeeper_rebalance_duration_seconds",
    "Time from the begin of a rebalance to the assignment that ends it, by its first cause.",
    "seconds",
    ("cause",),
    more="A group that has become empty ends it, too; a rebalance that starts again before its end counts once.",
)
REBALANCE_SLOWEST_MEMBER: Final = CounterHelp(
    "groupkeeper_rebalance_slowest_member_seconds_total",
    "Of these times the part in which all members but one had done what they had to.",
    "seconds",
    ("cause", "phase"),
    more="`join`: by how much the last member to rejoin, or one that never did, was later than all others. "
    "`assignment`: how long the leader took. Over `groupkeeper_rebalance_duration_seconds_sum` it is the slowest "
    "member's share.",
)
GROUP_OFFSET_COMMITS: Final = CounterHelp(
    "groupkeeper_group_offset_commits_total",
    "Offsets committed by the groups that commit most, since they are in memory.",
    "offsets",
    ("group",),
    since="the group was loaded or made",
    more="Only with `metrics.groups.top = N`, and of N groups.",
)
GROUP_REBALANCES: Final = CounterHelp(
    "groupkeeper_group_rebalances_total",
    "Rebalances of the groups that rebalance most, since they are in memory.",
    "rebalances",
    ("group",),
    since="the group was loaded or made",
    more="Only with `metrics.groups.top = N`, and of N groups.",
)
GROUP_EXPIRATIONS: Final = CounterHelp(
    "groupkeeper_group_expirations_total", "Groups removed because nothing was left of them.", "groups"
)

SECTION: Final = Section("Groups", list_metric_help(globals()))
