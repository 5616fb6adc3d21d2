# SPDX-License-Identifier: Apache-2.0
"""Metrics of the log and its disk: flushes, loading, compaction."""

from typing import Final

from coordinator.admin.reference.metric_help import (
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
    "Flushes of the log that failed.",
    "flushes",
    more="Nothing of them was acknowledged.",
)
LAST_FLUSH: Final = GaugeHelp(
    "groupkeeper_last_flush_timestamp_seconds",
    "When the newest flush of the log began that succeeded; 0 if there was none since the start.",
    "Unix time",
    since=NOW,
)
LOG_REFUSING: Final = GaugeHelp(
    "groupkeeper_log_refusing_since_timestamp_seconds",
    "Since when the log refuses all appends, because a write has failed; 0 while it takes them.",
    "Unix time",
    since=NOW,
)
DISK_FREE: Final = GaugeHelp(
    "groupkeeper_disk_free_bytes",
    "Bytes that the node may still take of the data directory's disk.",
    "bytes",
    since=NOW,
    more="It is looked at twice a second.",
)
DISK_SIZE: Final = GaugeHelp("groupkeeper_disk_size_bytes", "How large that disk is.", "bytes", since=NOW)
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
    more="`owned` ones are served; `loading` ones are being read; `waiting` ones are loaded once the log takes "
    "appends again; `failed` ones cannot be read.",
    elsewhere="`gcm` `num-partitions{state=active,loading,failed}`",
)
PARTITIONS_UNWRITABLE: Final = GaugeHelp(
    "groupkeeper_partitions_unwritable",
    "Partitions that this node leads and to which nothing can be committed now.",
    "partitions",
    since=NOW,
    more="All of them while the log refuses appends, else those that are loading, waiting or failed.",
)
PARTITIONS_IN_WRONG_PLACE: Final = GaugeHelp(
    "groupkeeper_partitions_in_wrong_place",
    "Partitions whose groups all belong to one other partition: their directories seem to be that one's.",
    "partitions",
    since=NOW,
    more="`/ready` names them. Clients look for these groups elsewhere, and find no offsets.",
)
MISPLACED_GROUPS: Final = GaugeHelp(
    "groupkeeper_misplaced_groups",
    "Groups that were loaded from a partition where no client looks for them.",
    "groups",
    since=NOW,
    more="A broker's topic that got more partitions has such groups; the log names them.",
)
LOADING_BYTES: Final = GaugeHelp(
    "groupkeeper_loading_bytes",
    "Bytes read so far of the partitions that are loading.",
    "bytes",
    since=NOW,
    more="`/ready` has it for each.",
)
LOADING_SIZE: Final = GaugeHelp(
    "groupkeeper_loading_size_bytes",
    "How long the logs of the partitions that are loading are.",
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
    "Records of a kind that is not served, skipped while loading.",
    "records",
)
OPEN_TRANSACTIONS: Final = CounterHelp(
    "groupkeeper_open_transactions_total",
    "Transactions without an end in a log, whose offsets were left out while loading.",
    "transactions",
    more="A broker has written them.",
)
LOG_DIRTY_RATIO_MAX: Final = GaugeHelp(
    "groupkeeper_log_dirty_ratio_max",
    "Of the dirtiest log the share that was not compacted yet.",
    "share of 1",
    since=NOW,
    elsewhere="`kafka.log:type=LogCleanerManager,name=max-dirty-percent`",
)
LOG_CLEANINGS: Final = CounterHelp(
    "groupkeeper_log_cleanings_total", "Compactions of a partition's log.", "compactions"
)
LOG_CLEANING_FREED: Final = CounterHelp(
    "groupkeeper_log_cleaning_freed_bytes_total",
    "Bytes that logs became shorter by when compacted.",
    "bytes",
)
LOG_CLEANING_FAILURES: Final = CounterHelp(
    "groupkeeper_log_cleaning_failures_total",
    "Compactions that failed; the log stayed as it was.",
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
    "When a log was last compacted; 0 if not since the start.",
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
