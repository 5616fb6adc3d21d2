# SPDX-License-Identifier: Apache-2.0
"""Metrics of groups, their members and rebalances."""

from typing import Final

from coordinator.admin.reference.metric_help_types import (
    GROUP,
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
    "Rebalances started, by cause.",
    "rebalances",
    ("cause",),
    elsewhere="`gcm` `group-completed-rebalance-count` (completed ones)",
)
GROUPS_REBALANCING_OFTEN: Final = GaugeHelp(
    "groupkeeper_groups_rebalancing_often",
    "Groups that rebalanced five times or more within five minutes.",
    "groups",
    since=NOW,
    more="In the current five minutes or the five before. `metrics.groups.top` and the page for browsers name them.",
)
REBALANCE_DURATION: Final = HistogramHelp(
    "groupkeeper_rebalance_duration_seconds",
    "Time from the start of a rebalance to the assignment that ends it, by its first cause.",
    "seconds",
    ("cause",),
    more="It also ends when the group becomes empty. A rebalance that starts again before its end is counted once.",
)
REBALANCE_SLOWEST_MEMBER: Final = CounterHelp(
    "groupkeeper_rebalance_slowest_member_seconds_total",
    "The part of rebalance durations in which the group waited for one member only.",
    "seconds",
    ("cause", "phase"),
    more="`join`: the delay of the last member, which may never have rejoined, behind all others. `assignment`: the "
    "time that the leader took. Divide it by `groupkeeper_rebalance_duration_seconds_sum` to get the slowest member's "
    "share.",
)
GROUP_OFFSET_COMMITS: Final = CounterHelp(
    "groupkeeper_group_offset_commits_total",
    "Offsets committed by the groups that commit most, since the group was loaded or created.",
    "offsets",
    (GROUP,),
    since="the group was loaded or created",
    more="Only with `metrics.groups.top = N`, for N groups.",
)
GROUP_REBALANCES: Final = CounterHelp(
    "groupkeeper_group_rebalances_total",
    "Rebalances of the groups that rebalance most, since the group was loaded or created.",
    "rebalances",
    (GROUP,),
    since="the group was loaded or created",
    more="Only with `metrics.groups.top = N`, for N groups.",
)
GROUP_EXPIRATIONS: Final = CounterHelp(
    "groupkeeper_group_expirations_total",
    "Groups deleted because they had no members or offsets left.",
    "groups",
)

SECTION: Final = Section("Groups", list_metric_help(globals()))
