# SPDX-License-Identifier: Apache-2.0
"""Metrics of the process: its version, jobs and event loop, and the processes around it."""

from typing import Final

from coordinator.admin.reference.metric_help_types import (
    NOW,
    CounterHelp,
    GaugeHelp,
    Section,
    list_metric_help,
)

SUPERVISED: Final = (
    "It changes only under a supervisor: with two or more `workers`, or in front of a Kafka cluster."
)

BUILD_INFO: Final = GaugeHelp(
    "groupkeeper_build_info",
    "The version of this node; always 1.",
    "none",
    ("version", "compiled", "python"),
    since=NOW,
    elsewhere="`kafka.server:type=app-info`",
)
LOOP_PAUSE_MAX: Final = GaugeHelp(
    "groupkeeper_loop_pause_seconds_max",
    "The longest pause of the event loop since the start.",
    "seconds",
    more="No request is answered meanwhile.",
    elsewhere="`gcm` `thread-idle-ratio-avg` comes nearest",
)
RECENT_LOOP_PAUSE_MAX: Final = GaugeHelp(
    "groupkeeper_recent_loop_pause_seconds_max",
    "The longest pause of the event loop in the current and the previous minute.",
    "seconds",
    since="the previous minute",
)
JOB_RUNS: Final = CounterHelp(
    "groupkeeper_job_runs_total",
    "Runs of a periodic job.",
    "runs",
    ("job",),
    more="The jobs are `expire_offsets`, `write_behind`, `checkpoint`, `close_idle_connections`, "
    "`close_unread_connections`, `watch_limits`, `compact`, `sync` and `measure_lag`.",
)
JOB_FAILURES: Final = CounterHelp(
    "groupkeeper_job_failures_total",
    "Failed runs of a periodic job.",
    "runs",
    ("job",),
    more="The next run starts on schedule.",
)
JOB_FAILING_SINCE: Final = GaugeHelp(
    "groupkeeper_job_failing_since_timestamp_seconds",
    "Since when every run of the job has failed; 0 if the latest run succeeded.",
    "Unix time",
    ("job",),
    since=NOW,
)
JOB_LAST_DURATION: Final = GaugeHelp(
    "groupkeeper_job_last_duration_seconds",
    "Duration of the latest run of the job.",
    "seconds",
    ("job",),
    since=NOW,
)
LOG_LINES_DROPPED: Final = CounterHelp(
    "groupkeeper_log_lines_dropped_total",
    "Lines of the node's own log dropped because earlier lines had not been read.",
    "lines",
)
PARTITIONS_GAINED: Final = CounterHelp(
    "groupkeeper_partitions_gained_total",
    "Partitions that the supervisor assigned to this node.",
    "partitions",
    more=SUPERVISED,
)
PARTITIONS_LOST: Final = CounterHelp(
    "groupkeeper_partitions_lost_total",
    "Partitions that the supervisor took away from this node.",
    "partitions",
    more=SUPERVISED,
)
WORKER_RESTARTS: Final = CounterHelp(
    "groupkeeper_worker_restarts_total",
    "How often this node died and was restarted.",
    "restarts",
    since="the supervisor's start",
    more=SUPERVISED,
)
LOOP_STALLS: Final = CounterHelp(
    "groupkeeper_loop_stalls_total",
    "Times that a worker's event loop was blocked for `worker.timeout.ms`.",
    "times",
    more="The worker is not killed for this. " + SUPERVISED,
)
UPSTREAM_UP: Final = GaugeHelp(
    "groupkeeper_upstream_up",
    "Whether the cluster answered the latest check.",
    "1 or 0",
    since=NOW,
    more="Only in front of a Kafka cluster. It is 0 until the cluster first answers; `/ready` reports why.",
)
UPSTREAM_BROKER_UP: Final = GaugeHelp(
    "groupkeeper_upstream_broker_up",
    "Whether a broker of the cluster answers the gateway.",
    "1 or 0",
    ("broker",),
    since=NOW,
    more="Only in front of a Kafka cluster. A broker that left its metadata is shown with 0 for half an hour.",
)

SECTION: Final = Section("The node", list_metric_help(globals()))
