# SPDX-License-Identifier: Apache-2.0
"""Metrics of a gateway: its processes, and the lag of its groups.

Metrics of the lag that kafka_exporter also has keep its names.
"""

from typing import Final

from coordinator.admin.reference.metric_help_types import GROUP, NOW, CounterHelp, GaugeHelp, Section

BY_GROUP: Final = (GROUP,)
BY_TOPIC: Final = (GROUP, "topic")
BY_PARTITION: Final = (GROUP, "topic", "partition")
MEASURED: Final = "the last measurement"

GROUP_LAG: Final = GaugeHelp(
    "groupkeeper_group_lag",
    "Records behind the ends of all partitions.",
    "records",
    BY_GROUP,
    since=MEASURED,
    more="From a group's committed offsets to the high watermarks, measured every `metrics.lag.interval.ms`.",
    elsewhere="kafka_exporter and kminion, by topic",
)
GROUP_STABLE_LAG: Final = GaugeHelp(
    "groupkeeper_group_stable_lag",
    "Records behind the last stable offsets of all partitions, as consumers with read_committed see it.",
    "records",
    BY_GROUP,
    since=MEASURED,
)
GROUP_LAG_SECONDS: Final = GaugeHelp(
    "groupkeeper_group_lag_seconds",
    "Seconds since the oldest end that the group has not reached was first seen.",
    "seconds",
    BY_GROUP,
    since=NOW,
    more="It is 0 if the group has reached all ends. A group that keeps up stays below two intervals, however busy "
    "its topics are.",
)
GROUP_STATUS: Final = GaugeHelp(
    "groupkeeper_group_status",
    "Whether the group gets on with its work, by the trend of its offsets; always 1.",
    "none",
    (GROUP, "status"),
    since="the last ten measurements",
    more="The worst status of its partitions, by Burrow's rules. `ok`: it keeps up, or catches up; `warn`: it commits, "
    "but only falls further behind; `stalled`: it commits the same offset again and again; `stopped`: it is behind, "
    "and commits nothing.",
    elsewhere="Burrow's status of a group",
)
GROUP_MEMBERS: Final = GaugeHelp(
    "groupkeeper_group_members", "Members of the group.", "members", BY_GROUP, since=MEASURED
)
LAG_SUM: Final = GaugeHelp(
    "kafka_consumergroup_lag_sum",
    "Records behind the ends of a topic's partitions.",
    "records",
    BY_TOPIC,
    since=MEASURED,
    more="With `metrics.lag` = `topic` or `partition`.",
    elsewhere="kafka_exporter, the same name",
)
CURRENT_OFFSET_SUM: Final = GaugeHelp(
    "kafka_consumergroup_current_offset_sum",
    "Sum of the committed offsets of a topic.",
    "records",
    BY_TOPIC,
    since=MEASURED,
    more="With `metrics.lag` = `topic` or `partition`.",
    elsewhere="kafka_exporter, the same name",
)
LAG: Final = GaugeHelp(
    "kafka_consumergroup_lag",
    "Records behind the end of a partition.",
    "records",
    BY_PARTITION,
    since=MEASURED,
    more="With `metrics.lag = partition`. Negative if the committed offset is beyond the end; sums count it as 0.",
    elsewhere="kafka_exporter, the same name",
)
CURRENT_OFFSET: Final = GaugeHelp(
    "kafka_consumergroup_current_offset",
    "The committed offset of a partition.",
    "records",
    BY_PARTITION,
    since=MEASURED,
    more="With `metrics.lag = partition`.",
    elsewhere="kafka_exporter, the same name",
)
LAG_LEFT_OUT: Final = GaugeHelp(
    "groupkeeper_lag_left_out",
    "Groups, topics and partitions left out because only the ten thousand of each with the largest lag are shown.",
    "rows",
    since=MEASURED,
    more="And partitions beyond the 500,000 whose progress is followed for the status of their groups.",
)
LAG_UNKNOWN_OFFSETS: Final = GaugeHelp(
    "groupkeeper_lag_unknown_offsets",
    "Committed offsets in partitions whose end the cluster does not report now; no lag includes them.",
    "offsets",
    since=MEASURED,
)

GATEWAY_CONNECTIONS: Final = GaugeHelp(
    "groupkeeper_gateway_connections", "Open client connections.", "connections", since=NOW
)
GATEWAY_ACCEPTED: Final = CounterHelp(
    "groupkeeper_gateway_connections_accepted_total",
    "Client connections accepted.",
    "connections",
    more="This includes connections whose TLS handshake failed afterwards.",
)
GATEWAY_REFUSED: Final = CounterHelp(
    "groupkeeper_gateway_connections_refused_total",
    "Client connections closed at once because of `max.connections` or `max.connections.per.ip`.",
    "connections",
)
GATEWAY_CONNECT_FAILURES: Final = CounterHelp(
    "groupkeeper_gateway_connect_failures_total",
    "Failed attempts to connect to a broker, or to one of our own nodes, for a client.",
    "connections",
    more="Each closed the client's connection, unless the gateway had another address to try; the log has the address.",
)
GATEWAY_CLOSED: Final = CounterHelp(
    "groupkeeper_gateway_connections_closed_total",
    "Connections closed by the gateway.",
    "connections",
    ("reason",),
    more="`protocol` (client or broker violated Kafka's protocol); `unread` (the client read no responses for "
    "`connections.unread.max.ms`); `room` (`connections.unsent.max.bytes` was used up); `idle`; `fault` (an error in "
    "the gateway, with a traceback in the log).",
)
GATEWAY_CERTIFICATE_EXPIRY: Final = GaugeHelp(
    "groupkeeper_gateway_certificate_expiry_timestamp_seconds",
    "When the certificate that clients get expires.",
    "Unix time",
    more="Only with `gateway.ssl.certificate.location`. The process has read the file at its start.",
)
GATEWAY_GROUPS_WAITED_FOR: Final = GaugeHelp(
    "groupkeeper_gateway_groups_waited_for",
    "Groups that clients try to join here while the groups have members at the cluster.",
    "groups",
    more="It counts attempts within the last 10 seconds, and includes share groups.",
    since=NOW,
)
GATEWAY_MEMBERS_WAITED_FOR: Final = GaugeHelp(
    "groupkeeper_gateway_members_waited_for",
    "Members that these groups had at the cluster when the gateway last asked.",
    "members",
    since=NOW,
)
GATEWAY_ADOPTIONS: Final = CounterHelp(
    "groupkeeper_gateway_adoptions_total",
    "Attempts to take over a group from the cluster.",
    "attempts",
    ("outcome",),
    more="`adopted`; `already` (the group was ours); `vacant` (it exists neither here nor at the cluster); "
    "`live` (it has members at the cluster, or is a share group); `failed`.",
)

OF_LAG: Final = Section(
    "In front of a Kafka cluster",
    (
        GROUP_LAG,
        GROUP_STABLE_LAG,
        GROUP_LAG_SECONDS,
        GROUP_STATUS,
        GROUP_MEMBERS,
        LAG_SUM,
        CURRENT_OFFSET_SUM,
        LAG,
        CURRENT_OFFSET,
        LAG_LEFT_OUT,
        LAG_UNKNOWN_OFFSETS,
    ),
    "Each node of a gateway shows these for the groups that it coordinates, unless `metrics.lag = off`. A node without "
    "a cluster shows those of groups, with `metrics.groups.top = N`: for the N groups with the largest lag, in the "
    "partitions of topics with an end group ([offsets.md](offsets.md)).",
    "Elsewhere",
)
OF_PROCESSES: Final = Section(
    "A gateway's processes",
    (
        GATEWAY_CONNECTIONS,
        GATEWAY_ACCEPTED,
        GATEWAY_REFUSED,
        GATEWAY_CONNECT_FAILURES,
        GATEWAY_CLOSED,
        GATEWAY_CERTIFICATE_EXPIRY,
        GATEWAY_GROUPS_WAITED_FOR,
        GATEWAY_MEMBERS_WAITED_FOR,
        GATEWAY_ADOPTIONS,
    ),
    "Each process that forwards requests serves its own /metrics, with these and the usual `process_*`:\n"
    "[gateway.md](gateway.md#when-something-is-away) lists the ports.",
    "Elsewhere",
)
