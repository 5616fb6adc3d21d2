# SPDX-License-Identifier: Apache-2.0
"""Every setting: its type, bounds, default, and a sentence on what it does.

A setting has Kafka's name, default and bounds wherever Kafka 4.4 has the thing (GroupCoordinatorConfig,
SocketServerConfigs, ServerLogConfigs, TopicConfig); the attribute has underscores for the name's dots.
"""

from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from coordinator.config.values import Address, Host, Text

INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1
MINUTE_MS: Final = 60_000
MIB: Final = 1024 * 1024

Natural = Annotated[int, Meta(ge=0, le=INT_MAX)]
Positive = Annotated[int, Meta(ge=1, le=INT_MAX)]
LongNatural = Annotated[int, Meta(ge=0, le=LONG_MAX)]
LongPositive = Annotated[int, Meta(ge=1, le=LONG_MAX)]
# Kafka sets no bound; ours keeps a mistyped count from filling the memory.
PartitionCount = Annotated[int, Meta(ge=1, le=100_000)]
RATE_MAX: Final = 1.7976931348623157e308
"""Java's largest double, which in Kafka means no limit."""
Rate = Annotated[float, Meta(ge=1, le=RATE_MAX)]
Ratio = Annotated[float, Meta(ge=0, le=1)]
BufferSize = Annotated[int, Meta(ge=1_024, le=INT_MAX)]
Port = Annotated[int, Meta(ge=1, le=65_535)]

GATEWAY_NODE_ID: Final = 1_000_000
"""The number added to `node.id` for a gateway's clients, so that our nodes have ids that no broker has."""


class Settings(msgspec.Struct, frozen=True, kw_only=True, rename=lambda name: name.replace("_", ".")):
    """All settings of one node; times in milliseconds and sizes in bytes unless a name says otherwise."""

    # --- Addresses and identity
    listen: Annotated[
        Address, "The address that the node listens on for Kafka clients; port 0 takes a free port."
    ] = Address("127.0.0.1", 9092)
    advertise: Annotated[
        Address | None,
        "The address that the node gives to clients; empty means `listen`, and port 0 the port that was bound.",
    ] = None
    metrics_listen: Annotated[
        Address | None,
        "The HTTP address of the page for browsers, /metrics, /health and /ready; empty turns them off.",
    ] = Address("127.0.0.1", 9308)
    metrics_groups_top: Annotated[
        Annotated[int, Meta(ge=0, le=1_000)],
        "Number of groups shown by name in /metrics, for each of: most commits, most rebalances, largest lag.",
    ] = 0
    node_id: Annotated[Natural, "The id of this node; clients see it as a broker id."] = 1
    cluster_id: Annotated[
        str | None, "The cluster id; empty means the one in `data.dir`, which the first start generates."
    ] = None

    workers: Annotated[
        Annotated[int, Meta(ge=1, le=64)],
        "Number of nodes to run, each a process with a share of the partitions; each further node has the next "
        "higher id and ports.",
    ] = 1
    worker_timeout_ms: Annotated[
        Annotated[int, Meta(ge=100, le=INT_MAX)],
        "The supervisor kills and restarts a worker that neither answers nor uses processor time for this long; it "
        "logs a worker whose event loop is held for this long as slow.",
    ] = 5_000
    worker_stuck_timeout_ms: Annotated[
        Annotated[int, Meta(ge=100, le=INT_MAX)],
        "The supervisor also kills a worker whose event loop is held for this long without using processor time.",
    ] = MINUTE_MS

    # --- The log
    data_dir: Annotated[Path, "The directory that holds all data; one `serve` at a time may use it."] = Path(
        "data"
    )
    log_flush: Annotated[
        Literal["always", "interval", "os"],
        "When the node sends a response: `always` once its records are on disk; `interval` and `os` once the operating "
        "system has them. `interval` syncs them every `log.flush.interval.ms`, `os` when the operating system decides.",
    ] = "always"
    log_flush_interval_ms: Annotated[LongPositive, "How often `log.flush = interval` syncs the log."] = 1_000
    journal_checkpoint_bytes: Annotated[
        Annotated[int, Meta(ge=65_536, le=LONG_MAX)],
        "The size at which the node checkpoints the journal: it syncs the records to their segments and empties the "
        "journal.",
    ] = 64 * MIB
    journal_checkpoint_interval_ms: Annotated[
        Annotated[int, Meta(ge=100, le=LONG_MAX)],
        "How often the node checkpoints a journal that is not empty.",
    ] = MINUTE_MS
    message_max_bytes: Annotated[
        BufferSize, "The largest record batch; a request that needs a larger one is refused."
    ] = MIB + 12
    offsets_topic_num_partitions: Annotated[
        PartitionCount,
        "Number of partitions of `__consumer_offsets`; it cannot change once there is data, since it determines the "
        "partition of each group.",
    ] = 50
    offsets_topic_segment_bytes: Annotated[
        BufferSize, "The size of a segment file at which the node starts a new one."
    ] = 100 * MIB
    offsets_topic_compression_codec: Annotated[
        Literal["none", "gzip", "snappy", "lz4", "zstd"],
        "The compression of new batches; the node reads all of these.",
    ] = "none"
    offsets_load_buffer_size: Annotated[
        Positive, "How many bytes are read at a time while a partition loads."
    ] = 5 * MIB
    offsets_value_version: Annotated[
        Literal[3, 4],
        "The version of new offset records: 3, which every tool can read, or 4, which Kafka 4.4 writes and which "
        "contains the topic id.",
    ] = 3
    segment_ms: Annotated[LongPositive, "The age of a segment file at which the node starts a new one."] = (
        7 * 24 * 60 * MINUTE_MS
    )
    log_index_interval_bytes: Annotated[
        Natural, "How many bytes of a segment lie between two entries of its index."
    ] = 4_096

    # --- Compaction
    log_cleaner_enable: Annotated[
        bool, "Whether segments are compacted in the background to the newest record of each key."
    ] = True
    log_cleaner_backoff_ms: Annotated[
        LongPositive, "How often the node looks for a log that needs compaction."
    ] = 15_000
    log_cleaner_dedupe_buffer_size: Annotated[
        Annotated[int, Meta(ge=MIB, le=LONG_MAX)],
        "The memory for the keys of one round of compaction; a log with more keys takes several rounds.",
    ] = 128 * MIB
    log_cleaner_io_max_bytes_per_second: Annotated[
        Rate, "The most bytes that compaction reads and writes per second, on average."
    ] = RATE_MAX
    min_cleanable_dirty_ratio: Annotated[
        Ratio, "The node compacts a log once more than this share of it is new since the last compaction."
    ] = 0.5
    delete_retention_ms: Annotated[
        LongNatural, "How long a tombstone is kept after it was first compacted."
    ] = 24 * 60 * MINUTE_MS
    min_compaction_lag_ms: Annotated[LongNatural, "Records younger than this are not compacted."] = 0
    max_compaction_lag_ms: Annotated[LongPositive, "The longest time that a record stays uncompacted."] = (
        LONG_MAX
    )

    # --- Groups and offsets
    group_min_session_timeout_ms: Annotated[Natural, "The shortest session timeout a member may ask for."] = (
        6_000
    )
    group_max_session_timeout_ms: Annotated[Natural, "The longest session timeout a member may ask for."] = (
        30 * MINUTE_MS
    )
    group_initial_rebalance_delay_ms: Annotated[
        Natural, "How long a new group waits for more members before its first assignment."
    ] = 3_000
    group_new_member_join_timeout_ms: Annotated[
        Positive, "How long a new member may wait in its first join; Kafka fixes this at the same 5 minutes."
    ] = 5 * MINUTE_MS
    group_max_size: Annotated[Positive, "The most members that a group may have."] = INT_MAX
    group_members_max_bytes: Annotated[
        LongPositive,
        "The most bytes of metadata, assignments and ids of one group's members; the group's leader gets the metadata "
        "of all members in one response.",
    ] = 64 * MIB
    max_groups: Annotated[LongPositive, "The most groups that a node keeps."] = 500_000
    max_group_ids_bytes: Annotated[LongPositive, "The most bytes of the ids of all groups together."] = (
        64 * MIB
    )
    max_members: Annotated[LongPositive, "The most members of all groups of a node."] = 500_000
    max_members_bytes: Annotated[
        LongPositive, "The most bytes of metadata, assignments and ids of all members."
    ] = 512 * MIB
    max_pending_members: Annotated[
        LongPositive, "The most member ids that were issued and have not joined yet."
    ] = 100_000
    max_offsets: Annotated[LongPositive, "The most committed offsets that a node keeps."] = 10_000_000
    max_offsets_metadata_bytes: Annotated[
        LongPositive, "The most bytes of metadata of all committed offsets."
    ] = 512 * MIB
    offset_metadata_max_bytes: Annotated[Natural, "The longest metadata of a committed offset."] = 4_096
    offsets_retention_minutes: Annotated[
        Positive, "How long offsets outlive the members of their group, or its subscription to their topic."
    ] = 7 * 24 * 60
    offsets_retention_check_interval_ms: Annotated[
        LongPositive, "How often the node looks for expired offsets."
    ] = 10 * MINUTE_MS

    # --- Topics
    auto_create_topics_enable: Annotated[
        bool, "Whether a Metadata request for an unknown topic creates the topic, if the client allows this."
    ] = True
    num_partitions: Annotated[
        PartitionCount, "Number of partitions of a topic that is created without a partition count."
    ] = 1
    max_topics: Annotated[Positive, "The most topics; at this number no more are created."] = 50_000
    max_partitions: Annotated[
        Positive, "The most partitions of all topics together; at this number no more are created."
    ] = 200_000
    max_partitions_per_request: Annotated[
        Positive, "The most partitions that one request may create; Kafka fixes this at the same 10,000."
    ] = 10_000
    topic_config_value_max_bytes: Annotated[Positive, "The longest value of a topic's setting."] = 4_096
    topic_config_total_max_bytes: Annotated[
        Natural, "The most bytes of the settings of all topics together."
    ] = 16 * MIB
    end_group: Annotated[
        str | None,
        "The group whose committed offsets are the ends of partitions, for topics without "
        "`groupkeeper.end.group`; empty means that the ends of those are unknown.",
    ] = None
    end_unknown: Annotated[
        Literal["-1", "0", "error"],
        "What ListOffsets returns for the unknown end of a partition to clients that send no leader epoch: no offset, "
        "the start, or UNSUPPORTED_FOR_MESSAGE_FORMAT. Other clients, mostly consumers, get the start.",
    ] = "-1"

    # --- In front of a Kafka cluster
    upstream_bootstrap_servers: Annotated[
        tuple[Address, ...] | None,
        "Brokers of the Kafka cluster behind this gateway; empty means no cluster, and the node keeps its own topics.",
    ] = None
    upstream_security_protocol: Annotated[
        Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"],
        "The protocol of the cluster's listener, for clients and for the gateway itself; clients log in with their own "
        "credentials.",
    ] = "PLAINTEXT"
    upstream_sasl_mechanism: Annotated[
        Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"] | None,
        "The mechanism with which the gateway itself logs in to the cluster, if the protocol uses SASL.",
    ] = None
    upstream_sasl_username: Annotated[
        Text | None, "The user name with which the gateway itself logs in, for PLAIN and SCRAM."
    ] = None
    upstream_sasl_password_file: Annotated[
        Path | None, "The file that holds the password of that user, and nothing else."
    ] = None
    upstream_sasl_oauthbearer_token_file: Annotated[
        Path | None,
        "The file that holds the gateway's token for OAUTHBEARER; the gateway reads it again for each login.",
    ] = None
    upstream_ssl_ca_location: Annotated[
        Path | None,
        "The PEM file of the certificate authorities that the gateway trusts for brokers; empty means the system's.",
    ] = None
    upstream_ssl_endpoint_identification: Annotated[
        bool, "Whether a broker's certificate must name the host that the gateway connected to."
    ] = True
    upstream_metadata_refresh_ms: Annotated[
        Annotated[int, Meta(ge=100, le=INT_MAX)],
        "How often the gateway asks the cluster for its brokers and topics; if a client names an unknown one, the "
        "gateway asks at once.",
    ] = 5_000
    upstream_request_timeout_ms: Annotated[
        Annotated[int, Meta(ge=100, le=INT_MAX)], "How long the gateway itself waits for a broker's response."
    ] = 30_000
    gateway_host: Annotated[
        Host | None,
        "The host that clients use for all ports of the gateway; empty means that of `advertise`, or else of `listen`.",
    ] = None
    gateway_port_base: Annotated[
        Port,
        "The gateway's port for broker 0; the port for each broker is this plus its id, on the host of `listen`.",
    ] = 10_000
    gateway_workers: Annotated[
        Annotated[int, Meta(ge=1, le=64)],
        "Number of processes that forward requests and responses between clients and brokers.",
    ] = 1
    gateway_spare: Annotated[
        bool,
        "Whether one more process stands by to replace one that dies; it needs memory, but clients do not wait for a "
        "process to start.",
    ] = True
    gateway_unreachable_timeout_ms: Annotated[
        LongNatural,
        "After no broker has answered a process of the gateway for this long, its /ready returns 503.",
    ] = 10_000
    gateway_ssl_certificate_location: Annotated[
        Path | None,
        "The PEM file of the certificate chain that the gateway presents to clients; empty means no TLS.",
    ] = None
    gateway_ssl_key_location: Annotated[Path | None, "The PEM file of that certificate's private key."] = None
    gateway_sni_pattern: Annotated[
        Text | None,
        "A host name that contains {id}, such as broker-{id}.kafka.example: clients then reach each node under the "
        "name with its id at `gateway.sni.port`, instead of at a port of its own.",
    ] = None
    gateway_sni_port: Annotated[Port, "The port that all nodes share if `gateway.sni.pattern` is set."] = (
        9_093
    )
    gateway_authorization_cache_ms: Annotated[
        LongNatural,
        "How long a connection uses the permissions that the cluster has returned before the gateway asks again.",
    ] = 10_000
    gateway_adopt: Annotated[
        Literal["off", "first-use"],
        "Whether the gateway takes over a group's committed offsets from the cluster when a client first joins the "
        "group, or commits without joining.",
    ] = "first-use"
    gateway_adopt_live_groups: Annotated[
        bool,
        "Whether the gateway takes over a group that has members of any kind at the cluster; otherwise the group stays "
        "there.",
    ] = False
    metrics_lag: Annotated[
        Literal["off", "group", "topic", "partition"],
        "The granularity of the metrics of consumer lag; each level has many more series than the one before.",
    ] = "group"
    metrics_lag_interval_ms: Annotated[
        Annotated[int, Meta(ge=1_000, le=INT_MAX)],
        "How often the lag of groups is measured; for it, a gateway asks the cluster for the ends of its partitions.",
    ] = 15_000

    # --- Connections
    max_connections: Annotated[Natural, "The most connections at a time."] = INT_MAX
    max_connections_per_ip: Annotated[Natural, "The most connections at a time from one address."] = INT_MAX
    connections_max_idle_ms: Annotated[
        LongPositive, "The node closes a connection that sends no request for this long."
    ] = 10 * MINUTE_MS
    socket_request_max_bytes: Annotated[
        Positive, "The largest request; a larger one closes its connection."
    ] = 100 * MIB
    queued_max_request_bytes_per_connection: Annotated[
        BufferSize,
        "The node stops reading from a connection while this many bytes of its requests wait; Kafka's "
        "`queued.max.request.bytes` counts all connections together.",
    ] = MIB
    fetch_max_bytes: Annotated[
        BufferSize, "The most bytes of records in one Fetch response; the first batch may be larger."
    ] = 55 * MIB
    connections_unsent_max_bytes: Annotated[
        Annotated[int, Meta(ge=MIB, le=LONG_MAX)],
        "The most bytes of responses that clients have not received yet, of all connections; beyond it the node "
        "handles only requests with small responses and, if that lasts, closes connections that read nothing.",
    ] = 256 * MIB
    connections_unread_max_ms: Annotated[
        Annotated[int, Meta(ge=1_000, le=LONG_MAX)],
        "The node closes a connection whose client receives nothing of its responses for this long.",
    ] = MINUTE_MS
    shutdown_timeout_ms: Annotated[
        Natural, "After SIGTERM, how long the node waits for the requests in progress."
    ] = 10_000

    # --- Logs
    log_format: Annotated[
        Literal["auto", "console", "json"],
        "The format of log lines; `auto` is `console` on a terminal and `json` elsewhere.",
    ] = "auto"
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], "The minimum level of the log lines that are written."
    ] = "info"

    @property
    def is_gateway(self) -> bool:
        """True if this node is a gateway to a Kafka cluster; it then has only the cluster's topics."""
        return self.upstream_bootstrap_servers is not None

    @property
    def gateway_advertised_host(self) -> str:
        """The host that a gateway advertises to clients, for brokers and for our own nodes."""
        return self.gateway_host or (self.advertise or self.listen).host

    def get_advertised_address(self, bound_port: int) -> Address:
        """Return the address that clients connect to, given the port that the listener has."""
        host, port = self.advertise or self.listen
        return Address(host, port or bound_port)

    @property
    def offsets_retention_ms(self) -> int:
        """The value of `offsets.retention.minutes` in milliseconds."""
        return self.offsets_retention_minutes * MINUTE_MS
