# SPDX-License-Identifier: Apache-2.0
"""Metrics of the log and its disk: flushes, loading, compaction."""

from typing import Final

from coordinator.admin.reference.metric_help_types import (
    NOW,
    CounterHelp,
    GaugeHelp,
    HistogramHelp,
    Section,
    list_metric_help,
)

FLUSH_DURATION: Final = HistogramHelp(
    "groupkeeper_flush_duration_seconds",
    "Time from the start of a flush to its end.",
    "seconds",
    elsewhere="`gcm` `batch-flush-time-ms-p99` and so on, which does not wait for the disk; "
    "`kafka.log:type=LogFlushStats,name=LogFlushRateAndTimeMs` does",
)
FLUSH_FAILURES: Final = CounterHelp(
    "groupkeeper_flush_failures_total",
    "Failed flushes of the log.",
    "flushes",
    more="Nothing in them was acknowledged.",
)
LAST_FLUSH: Final = GaugeHelp(
    "groupkeeper_last_flush_timestamp_seconds",
    "Start time of the last successful flush of the log; 0 if there was none since the start.",
    "Unix time",
    since=NOW,
)
LOG_REFUSING: Final = GaugeHelp(
    "groupkeeper_log_refusing_since_timestamp_seconds",
    "Since when the log refuses all appends because a write has failed; 0 while it accepts them.",
    "Unix time",
    since=NOW,
)
DISK_FREE: Final = GaugeHelp(
    "groupkeeper_disk_free_bytes",
    "Bytes that the node can still write to the disk of the data directory.",
    "bytes",
    since=NOW,
    more="Checked twice a second.",
)
DISK_SIZE: Final = GaugeHelp(
    "groupkeeper_disk_size_bytes", "Size of the disk of the data directory.", "bytes", since=NOW
)
JOURNAL_BYTES: Final = GaugeHelp(
    "groupkeeper_journal_bytes",
    "Bytes in the journal since the last checkpoint.",
    "bytes",
    since="the last checkpoint",
)
PARTITIONS: Final = GaugeHelp(
    "groupkeeper_partitions",
    "Partitions by state.",
    "partitions",
    ("state",),
    since=NOW,
    more="`owned`: served; `loading`: being read; `waiting`: will be loaded once the log accepts appends again; "
    "`failed`: cannot be read.",
    elsewhere="`gcm` `num-partitions{state=active,loading,failed}`",
)
PARTITIONS_UNWRITABLE: Final = GaugeHelp(
    "groupkeeper_partitions_unwritable",
    "Partitions that this node leads and that accept no commits now.",
    "partitions",
    since=NOW,
    more="All of them while the log refuses appends, otherwise those that are loading, waiting or failed.",
)
PARTITIONS_IN_WRONG_PLACE: Final = GaugeHelp(
    "groupkeeper_partitions_in_wrong_place",
    "Partitions whose groups all belong to one other partition: they seem to have the directory of that partition.",
    "partitions",
    since=NOW,
    more="`/ready` lists them. Clients look for these groups in the other partition and find no offsets.",
)
MISPLACED_GROUPS: Final = GaugeHelp(
    "groupkeeper_misplaced_groups",
    "Groups loaded from a partition in which no client looks for them.",
    "groups",
    since=NOW,
    more="This happens if a broker's offsets topic was given more partitions; the log names the groups.",
)
LOADING_BYTES: Final = GaugeHelp(
    "groupkeeper_loading_bytes",
    "Bytes read so far of the partitions that are loading.",
    "bytes",
    since=NOW,
    more="`/ready` shows it for each partition.",
)
LOADING_SIZE: Final = GaugeHelp(
    "groupkeeper_loading_size_bytes",
    "Total size of the logs of the partitions that are loading.",
    "bytes",
    since=NOW,
)
PARTITION_LOADS: Final = CounterHelp("groupkeeper_partition_loads_total", "Partitions loaded.", "partitions")
PARTITION_LOAD_FAILURES: Final = CounterHelp(
    "groupkeeper_partition_load_failures_total", "Partitions that could not be loaded.", "partitions"
)
PARTITION_LOAD_MAX: Final = GaugeHelp(
    "groupkeeper_partition_load_seconds_max",
    "The longest load of a partition.",
    "seconds",
    elsewhere="`gcm` `partition-load-time-max` (milliseconds)",
)
LOADED_RECORDS: Final = CounterHelp(
    "groupkeeper_loaded_records_total", "Records applied while loading.", "records"
)
UNKNOWN_RECORDS: Final = CounterHelp(
    "groupkeeper_unknown_records_total",
    "Records of unsupported types, skipped while loading.",
    "records",
)
OPEN_TRANSACTIONS: Final = CounterHelp(
    "groupkeeper_open_transactions_total",
    "Transactions without an end marker in a log, whose offsets were left out while loading.",
    "transactions",
    more="A broker wrote them.",
)
LOG_DIRTY_RATIO_MAX: Final = GaugeHelp(
    "groupkeeper_log_dirty_ratio_max",
    "Share of the dirtiest log that is not compacted yet.",
    "share of 1",
    since=NOW,
    elsewhere="`kafka.log:type=LogCleanerManager,name=max-dirty-percent`",
)
LOG_CLEANINGS: Final = CounterHelp(
    "groupkeeper_log_cleanings_total", "Compactions of a partition's log.", "compactions"
)
LOG_CLEANING_FREED: Final = CounterHelp(
    "groupkeeper_log_cleaning_freed_bytes_total",
    "Bytes by which compactions made logs shorter.",
    "bytes",
)
LOG_CLEANING_FAILURES: Final = CounterHelp(
    "groupkeeper_log_cleaning_failures_total",
    "Failed compactions, which left the log unchanged.",
    "compactions",
)
LOG_UNCLEANABLE: Final = GaugeHelp(
    "groupkeeper_log_uncleanable_partitions",
    "Partitions whose log cannot be compacted.",
    "partitions",
    since=NOW,
    more="It is damaged, or its keys do not fit in `log.cleaner.dedupe.buffer.size`. The next start tries again.",
    elsewhere="`kafka.log:type=LogCleanerManager,name=uncleanable-partitions-count`",
)
LOG_LAST_CLEANED: Final = GaugeHelp(
    "groupkeeper_log_last_cleaned_timestamp_seconds",
    "Time of the last compaction of a log; 0 if there was none since the start.",
    "Unix time",
    since=NOW,
)
LOG_CLEANER_LAST_RUN: Final = GaugeHelp(
    "groupkeeper_log_cleaner_last_run_timestamp_seconds",
    "Time of the cleaner's last check for a log to compact.",
    "Unix time",
    since=NOW,
    elsewhere="`kafka.log:type=LogCleanerManager,name=time-since-last-run-ms`",
)

SECTION: Final = Section("The log and its disk", list_metric_help(globals()))
