# SPDX-License-Identifier: Apache-2.0
"""Metrics of committed offsets."""

from typing import Final

from coordinator.admin.reference.metric_help_types import (
    NOW,
    CounterHelp,
    GaugeHelp,
    Section,
    list_metric_help,
)

OFFSETS: Final = GaugeHelp(
    "groupkeeper_offsets",
    "Committed offsets in memory.",
    "offsets",
    since=NOW,
    elsewhere="`kafka.coordinator.group:type=GroupMetadataManager,name=NumOffsets`",
)
OFFSET_COMMITS: Final = CounterHelp(
    "groupkeeper_offset_commits_total",
    "Offsets committed, counted by partition.",
    "offsets",
    elsewhere="`gcm` `offset-commit-count`",
)
OFFSET_FETCHES: Final = CounterHelp(
    "groupkeeper_offset_fetches_total", "Groups whose offsets were fetched.", "groups"
)
LOG_FETCHES: Final = CounterHelp(
    "groupkeeper_log_fetches_total",
    "Fetches of the offsets topic.",
    "requests",
    more="Its log can be consumed ([offsets.md](offsets.md#reading-the-offsets-topic)).",
)
LOG_FETCHED_BYTES: Final = CounterHelp(
    "groupkeeper_log_fetched_bytes_total",
    "Bytes of records in responses to fetches of the offsets topic.",
    "bytes",
)
OFFSET_DELETIONS: Final = CounterHelp(
    "groupkeeper_offset_deletions_total",
    "Offsets deleted on request or with their group or topic.",
    "offsets",
    elsewhere="`gcm` `offset-deletion-count`",
)
OFFSET_EXPIRATIONS: Final = CounterHelp(
    "groupkeeper_offset_expirations_total",
    "Offsets deleted because they had expired.",
    "offsets",
    elsewhere="`gcm` `offset-expiration-count`",
)
WALL_CLOCK_JUMPS: Final = CounterHelp(
    "groupkeeper_wall_clock_jumps_total",
    "Checks for expired offsets postponed because the wall clock jumped.",
    "checks",
    more="See [operations.md](operations.md#when-offsets-expire).",
)

SECTION: Final = Section("Offsets", list_metric_help(globals()))
