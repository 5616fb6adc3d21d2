# SPDX-License-Identifier: Apache-2.0
"""Metrics of requests and connections."""

from typing import Final

from coordinator.admin.reference.metric_help_types import (
    NOW,
    CounterHelp,
    GaugeHelp,
    HistogramHelp,
    Section,
    list_metric_help,
)

REQUESTS: Final = CounterHelp(
    "groupkeeper_requests_total",
    "Requests handled, by api.",
    "requests",
    ("api",),
    elsewhere="`kafka.network:type=RequestMetrics,name=RequestsPerSec,request=…`",
)
REQUEST_DURATION: Final = HistogramHelp(
    "groupkeeper_request_duration_seconds",
    "Time from the start of handling a request until its response is passed to the socket.",
    "seconds",
    ("api",),
    more="This includes the time that a request waits for the disk, for a rebalance or in a long poll, but not behind "
    "earlier requests of the same connection.",
    elsewhere="`kafka.network:type=RequestMetrics,name=TotalTimeMs,request=…` less the time in the queue",
)
REQUEST_ERRORS: Final = CounterHelp(
    "groupkeeper_request_errors_total",
    "Errors in responses, by api and error; one response may have several.",
    "errors",
    ("api", "error"),
    more="This includes errors of single topics, partitions, groups and members.",
    elsewhere="`kafka.network:type=RequestMetrics,name=ErrorsPerSec,request=…,error=…`",
)
UNSUPPORTED_REQUESTS: Final = CounterHelp(
    "groupkeeper_unsupported_requests_total",
    "Requests of an unknown api or version; each closed its connection.",
    "requests",
)
MALFORMED_REQUESTS: Final = CounterHelp(
    "groupkeeper_malformed_requests_total",
    "Requests that could not be read; each closed its connection.",
    "requests",
)
OVERSIZED_REQUESTS: Final = CounterHelp(
    "groupkeeper_oversized_requests_total",
    "Requests longer, or with more items, than their api allows; each closed its connection.",
    "requests",
    more="The limits are in [differences.md](differences.md#requests-that-are-too-large).",
)
OVERSIZED_ANSWERS: Final = CounterHelp(
    "groupkeeper_oversized_answers_total",
    "Responses not sent because they would be too large.",
    "responses",
    more="The limit is 64 MiB.",
)
RECEIVED_BYTES: Final = CounterHelp(
    "groupkeeper_received_bytes_total",
    "Bytes read from Kafka clients.",
    "bytes",
    elsewhere="`kafka.server:type=socket-server-metrics,…` `incoming-byte-total`",
)
SENT_BYTES: Final = CounterHelp(
    "groupkeeper_sent_bytes_total",
    "Bytes written to Kafka clients.",
    "bytes",
    elsewhere="`kafka.server:type=socket-server-metrics,…` `outgoing-byte-total`",
)
CONNECTIONS: Final = GaugeHelp(
    "groupkeeper_connections",
    "Open connections.",
    "connections",
    since=NOW,
    elsewhere="`kafka.server:type=socket-server-metrics,…` `connection-count`",
)
CONNECTIONS_ACCEPTED: Final = CounterHelp(
    "groupkeeper_connections_accepted_total",
    "Connections accepted.",
    "connections",
    elsewhere="`kafka.server:type=socket-server-metrics,…` `connection-creation-total`",
)
CONNECTIONS_REFUSED: Final = CounterHelp(
    "groupkeeper_connections_refused_total",
    "Connections refused by a limit.",
    "connections",
    more="The limits are `max.connections` and `max.connections.per.ip`.",
)
CONNECTIONS_IDLE_CLOSED: Final = CounterHelp(
    "groupkeeper_connections_idle_closed_total",
    "Connections closed because they sent no requests.",
    "connections",
    more="The limit is `connections.max.idle.ms`.",
    elsewhere="`kafka.server:type=socket-server-metrics,…` `expired-connections-killed-count`",
)
CONNECTIONS_UNREAD_CLOSED: Final = CounterHelp(
    "groupkeeper_connections_unread_closed_total",
    "Connections closed because their clients did not read responses.",
    "connections",
    more="The limits are `connections.unread.max.ms` and `connections.unsent.max.bytes`.",
)
LIMIT_USED: Final = GaugeHelp(
    "groupkeeper_limit_used",
    "How much of a limit is in use.",
    "the limit's",
    ("limit",),
    since=NOW,
    more="The label is the setting's name; see [operations.md](operations.md#limits).",
)
LIMIT_MAX: Final = GaugeHelp(
    "groupkeeper_limit_max", "The value of the limit.", "the limit's", ("limit",), since=NOW
)
LIMIT_REFUSALS: Final = CounterHelp(
    "groupkeeper_limit_refusals_total",
    "Requests, or parts of them, that a limit refused or held back.",
    "refusals",
    ("limit",),
)

SECTION: Final = Section("Requests and connections", list_metric_help(globals()))
