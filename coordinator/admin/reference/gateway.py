# SPDX-License-Identifier: Apache-2.0
"""Metrics of a gateway: the lag of its groups, under kafka_exporter's names if it has one, and its processes."""

from typing import Final

from coordinator.admin.reference.metric_help import NOW, CounterHelp, GaugeHelp, Section

BY_GROUP: Final = ("consumergroup",)
BY_TOPIC: Final = ("consumergroup", "topic")
BY_PARTITION: Final = ("consumergroup", "topic", "partition")
MEASURED: Final = "the last measurement"

GROUP_LAG: Final = GaugeHelp(
    "groupkeeper_group_lag",
    "Records behind the ends of all partitions.",
    "records",
    BY_GROUP,
    since=MEASURED,
    more="From a group's committed offsets to the high watermarks, measured every `metrics.lag.interval.ms`. A node "
    "without a cluster shows it with `metrics.groups.top = N` of the N groups that are furthest behind, as far as end "
    "groups that the same node leads say where the work ends ([offsets.md](offsets.md)).",
    elsewhere="kafka_exporter and kminion, by topic",
)
GROUP_STABLE_LAG: Final = GaugeHelp(
    "groupkeeper_group_stable_lag",
    "Records behind the ends as readers with read_committed count them.",
    "records",
    BY_GROUP,
    since=MEASURED,
    more="It goes to the last stable offsets.",
)
GROUP_LAG_SECONDS: Final = GaugeHelp(
    "groupkeeper_group_lag_seconds",
    "How long ago the oldest end was seen that the group has not reached.",
    "seconds",
    BY_GROUP,
    since=NOW,
    more="It is 0 where the group has reached all. A group that keeps up stays below two intervals, however busy "
    "its topics are.",
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
    "Committed offsets of a topic, summed up.",
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
    more="With `metrics.lag = partition`. Negative when the committed offset is beyond the end; sums count it as 0.",
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
    "Groups, topics or partitions of groups with less lag than the ten thousand that are shown of each.",
    "rows",
    since=MEASURED,
)
LAG_UNKNOWN_OFFSETS: Final = GaugeHelp(
    "groupkeeper_lag_unknown_offsets",
    "Committed offsets in partitions whose end the cluster does not say now; no lag counts them.",
    "offsets",
    since=MEASURED,
)

GATEWAY_CONNECTIONS: Final = GaugeHelp(
    "groupkeeper_gateway_connections", "Open connections of clients.", "connections", since=NOW
)
GATEWAY_ACCEPTED: Final = CounterHelp(
    "groupkeeper_gateway_connections_accepted_total",
    "Connections of clients that were taken.",
    "connections",
    more="Those whose TLS handshake then failed count, too.",
)
GATEWAY_REFUSED: Final = CounterHelp(
    "groupkeeper_gateway_connections_refused_total",
    "Connections of clients that were closed at once because of `max.connections` or `max.connections.per.ip`.",
    "connections",
)
GATEWAY_CONNECT_FAILURES: Final = CounterHelp(
    "groupkeeper_gateway_connect_failures_total",
    "Connections to brokers, or to our own nodes, that could not be made for a client.",
    "connections",
    more="Each closed the client's connection, unless there was another place to connect to; the log names the place.",
)
GATEWAY_CLOSED: Final = CounterHelp(
    "groupkeeper_gateway_connections_closed_total",
    "Connections that a gateway has closed of itself.",
    "connections",
    ("reason",),
    more="`protocol` (client or broker does not speak Kafka's); `unread` (it read no answers for "
    "`connections.unread.max.ms`); `room` (`connections.unsent.max.bytes` was used up); `idle`; `fault` (of ours, with "
    "its traceback in the log).",
)
GATEWAY_GROUPS_WAITED_FOR: Final = GaugeHelp(
    "groupkeeper_gateway_groups_waited_for",
    "Groups that clients want to be in here, and that have members at the cluster.",
    "groups",
    more="Asked for within the last 10 seconds; share groups count, too.",
    since=NOW,
)
GATEWAY_MEMBERS_WAITED_FOR: Final = GaugeHelp(
    "groupkeeper_gateway_members_waited_for",
    "Members that these groups had at the cluster when it was asked last.",
    "members",
    since=NOW,
)
GATEWAY_ADOPTIONS: Final = CounterHelp(
    "groupkeeper_gateway_adoptions_total",
    "Attempts to take a group over from the cluster.",
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
        LAG_SUM,
        CURRENT_OFFSET_SUM,
        LAG,
        CURRENT_OFFSET,
        LAG_LEFT_OUT,
        LAG_UNKNOWN_OFFSETS,
    ),
    "Each node of a gateway has these of the groups that it coordinates, unless `metrics.lag = off`.",
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
        GATEWAY_GROUPS_WAITED_FOR,
        GATEWAY_MEMBERS_WAITED_FOR,
        GATEWAY_ADOPTIONS,
    ),
    "The processes that pass bytes on have a page of their own each, with these and the usual `process_*`:\n"
    "[gateway.md](gateway.md#when-something-is-away) says at which ports.",
    "Elsewhere",
)
