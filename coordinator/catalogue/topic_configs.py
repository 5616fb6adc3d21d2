# SPDX-License-Identifier: Apache-2.0
"""The settings that a topic can have: Kafka 4.4's (TopicConfig) and one of our own.

Tools that create topics set Kafka's settings and want to read them back; so all of them are known here, checked as
Kafka checks them, stored and shown. None of Kafka's settings has an effect, because our topics hold no data.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from coordinator.catalogue.config_values import (
    LONG_MAX,
    ConfigKind,
    boolean_kind,
    choice_kind,
    compression_level_kind,
    integer_kind,
    list_kind,
    long_kind,
    ratio_kind,
    text_kind,
    throttled_replicas_kind,
)
from coordinator.catalogue.topic import Topic
from coordinator.config import Settings
from protocol.newtypes import GroupId

_NEVER: Final = str(LONG_MAX)
_DECOMPRESSED_MAX: Final = 2_147_483_639
"""The longest array of a JVM."""

END_GROUP: Final = "groupkeeper.end.group"
"""The topic's setting that names the group whose committed offsets are the ends of its partitions."""
GROUP_ID_LENGTH_MAX: Final = 249


class ConfigKey(msgspec.Struct, frozen=True):
    """A setting of a topic; `broker_name` is the broker's setting that gives its default in Kafka.

    Kafka does not know the settings that are `ours`: they are shown only if they are set, and their `broker_name` is
    the node's setting that counts for topics without them.
    """

    name: str
    kind: ConfigKind
    default: str
    broker_name: str | None
    documentation: str
    ours: bool = False


_KEYS: Final = (
    ConfigKey(
        "cleanup.policy",
        list_kind("compact", "delete"),
        "delete",
        "log.cleanup.policy",
        "What happens to old records: they are deleted, or compacted to the newest one of each key, or both.",
    ),
    ConfigKey(
        "compression.gzip.level",
        compression_level_kind(1, 9, -1),
        "-1",
        "compression.gzip.level",
        "The level where compression.type is gzip; -1 is the codec's own default.",
    ),
    ConfigKey(
        "compression.lz4.level",
        integer_kind(1, 17),
        "9",
        "compression.lz4.level",
        "The level where compression.type is lz4.",
    ),
    ConfigKey(
        "compression.type",
        choice_kind("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        "producer",
        "compression.type",
        "How batches are compressed in the log; `producer` keeps them as they came.",
    ),
    ConfigKey(
        "compression.zstd.level",
        integer_kind(-131_072, 22),
        "3",
        "compression.zstd.level",
        "The level where compression.type is zstd.",
    ),
    ConfigKey(
        "delete.retention.ms",
        long_kind(),
        "86400000",
        "log.cleaner.delete.retention.ms",
        "How long compaction keeps a tombstone for readers that are behind.",
    ),
    ConfigKey(
        "errors.deadletterqueue.group.enable",
        boolean_kind(),
        "false",
        None,
        "Whether share groups may write records here that could not be processed.",
    ),
    ConfigKey(
        "file.delete.delay.ms",
        long_kind(),
        "60000",
        "log.segment.delete.delay.ms",
        "How long a file that is not needed any more stays on disk.",
    ),
    ConfigKey(
        "flush.messages",
        long_kind(1),
        _NEVER,
        "log.flush.interval.messages",
        "After how many records the log is synced to disk.",
    ),
    ConfigKey(
        "flush.ms", long_kind(), _NEVER, None, "After how many milliseconds the log is synced to disk."
    ),
    ConfigKey(
        "follower.replication.throttled.replicas",
        throttled_replicas_kind(),
        "",
        None,
        "The replicas whose followers are throttled: partition:broker pairs, or * for all.",
    ),
    ConfigKey(
        END_GROUP,
        text_kind(GROUP_ID_LENGTH_MAX),
        "",
        "end.group",
        "The group that commits how far the work in this topic has been made: the ends of its partitions.",
        ours=True,
    ),
    ConfigKey(
        "index.interval.bytes",
        integer_kind(),
        "4096",
        "log.index.interval.bytes",
        "How many bytes of the log lie between two entries of its index.",
    ),
    ConfigKey(
        "leader.replication.throttled.replicas",
        throttled_replicas_kind(),
        "",
        None,
        "The replicas whose leaders are throttled: partition:broker pairs, or * for all.",
    ),
    ConfigKey(
        "local.retention.bytes",
        long_kind(-2),
        "-2",
        "log.local.retention.bytes",
        "How much of a tiered partition stays on the broker; -2 takes retention.bytes.",
    ),
    ConfigKey(
        "local.retention.ms",
        long_kind(-2),
        "-2",
        "log.local.retention.ms",
        "How long records of a tiered partition stay on the broker; -2 takes retention.ms.",
    ),
    ConfigKey(
        "max.compaction.lag.ms",
        long_kind(1),
        _NEVER,
        "log.cleaner.max.compaction.lag.ms",
        "The longest time that a record may wait for compaction.",
    ),
    ConfigKey(
        "max.decompressed.message.bytes",
        integer_kind(1, _DECOMPRESSED_MAX),
        str(_DECOMPRESSED_MAX),
        "max.decompressed.message.bytes",
        "The largest record that the topic takes, after it was decompressed.",
    ),
    ConfigKey(
        "max.message.bytes",
        integer_kind(),
        "1048588",
        "message.max.bytes",
        "The largest batch of records that the topic takes.",
    ),
    ConfigKey(
        "message.timestamp.after.max.ms",
        long_kind(),
        "3600000",
        "log.message.timestamp.after.max.ms",
        "How far a record's timestamp may be ahead of the broker's clock.",
    ),
    ConfigKey(
        "message.timestamp.before.max.ms",
        long_kind(),
        _NEVER,
        "log.message.timestamp.before.max.ms",
        "How far a record's timestamp may be behind the broker's clock.",
    ),
    ConfigKey(
        "message.timestamp.type",
        choice_kind("CreateTime", "LogAppendTime"),
        "CreateTime",
        "log.message.timestamp.type",
        "Whether a record carries the time at which it was made or at which it was appended.",
    ),
    ConfigKey(
        "min.cleanable.dirty.ratio",
        ratio_kind(),
        "0.5",
        "log.cleaner.min.cleanable.ratio",
        "The share of a log that has to be new before it is compacted.",
    ),
    ConfigKey(
        "min.compaction.lag.ms",
        long_kind(),
        "0",
        "log.cleaner.min.compaction.lag.ms",
        "The shortest time for which a record stays out of compaction.",
    ),
    ConfigKey(
        "min.insync.replicas",
        integer_kind(1),
        "1",
        "min.insync.replicas",
        "How many replicas must have a record before a producer with acks=all is answered.",
    ),
    ConfigKey(
        "preallocate",
        boolean_kind(),
        "false",
        "log.preallocate",
        "Whether the file of a new segment gets its full size at once.",
    ),
    ConfigKey(
        "remote.copy.lag.bytes",
        long_kind(-1),
        "-1",
        "log.remote.copy.lag.bytes",
        "The size of newer records from which a segment is copied to remote storage; -1 takes local.retention.bytes.",
    ),
    ConfigKey(
        "remote.copy.lag.ms",
        long_kind(-1),
        "0",
        "log.remote.copy.lag.ms",
        "The age from which a segment is copied to remote storage; -1 takes local.retention.ms.",
    ),
    ConfigKey(
        "remote.log.copy.disable",
        boolean_kind(),
        "false",
        None,
        "Whether the tiered part of the topic takes no new data.",
    ),
    ConfigKey(
        "remote.log.delete.on.disable",
        boolean_kind(),
        "false",
        None,
        "Whether tiered data is deleted when tiering is turned off.",
    ),
    ConfigKey(
        "remote.storage.enable",
        boolean_kind(),
        "false",
        None,
        "Whether old segments move to remote storage. There is none here, so it cannot be turned on.",
    ),
    ConfigKey(
        "retention.bytes",
        long_kind(-LONG_MAX - 1),
        "-1",
        "log.retention.bytes",
        "The size from which old records of a partition are deleted; -1 is no limit.",
    ),
    ConfigKey(
        "retention.ms",
        long_kind(-1),
        "604800000",
        None,
        "The age from which records are deleted; -1 is no limit.",
    ),
    ConfigKey(
        "segment.bytes",
        integer_kind(1_048_576),
        "1073741824",
        "log.segment.bytes",
        "The size at which a segment file is followed by a new one.",
    ),
    ConfigKey(
        "segment.index.bytes",
        integer_kind(4),
        "10485760",
        "log.index.size.max.bytes",
        "The largest size of a segment's index.",
    ),
    ConfigKey(
        "segment.jitter.ms",
        long_kind(),
        "0",
        None,
        "The most by which segment.ms is shortened at random, so that segments do not all end at once.",
    ),
    ConfigKey(
        "segment.ms",
        long_kind(1),
        "604800000",
        None,
        "The age at which a segment file is followed by a new one.",
    ),
    ConfigKey(
        "unclean.leader.election.enable",
        boolean_kind(),
        "false",
        "unclean.leader.election.enable",
        "Whether a replica that is behind may become the leader when there is no other.",
    ),
)

TOPIC_CONFIGS: Final[Mapping[str, ConfigKey]] = {key.name: key for key in _KEYS}


def refusal_reason(configs: Mapping[str, str]) -> str | None:
    """Return what is wrong with the settings of a new topic, None if all of them can be stored."""
    for name, value in configs.items():
        if name not in TOPIC_CONFIGS:
            return f"Unknown topic config name: {name}"
        try:
            TOPIC_CONFIGS[name].kind.canonical(value)
        except ValueError as error:
            return f"Invalid value {value} for configuration {name}: {error}"
    return _why_in_conflict(configs)


def end_offsets_group_id(topic: Topic, settings: Settings) -> GroupId:
    """Return the group whose committed offsets are the ends of the topic's partitions, empty if none is declared."""
    return GroupId(topic.configs.get(END_GROUP, settings.end_group or ""))


def canonicalize_value(name: str, value: str) -> str:
    """Return a known setting's value as it is shown: ' 5 ' is 5, TRUE is true. Raises ValueError for a bad value."""
    return TOPIC_CONFIGS[name].kind.canonical(value)


def _why_in_conflict(configs: Mapping[str, str]) -> str | None:
    """Return why the settings contradict each other, else None (LogConfig.validateValues)."""

    def effective(name: str) -> str:
        return canonicalize_value(name, configs.get(name, TOPIC_CONFIGS[name].default))

    if effective("remote.storage.enable") == "true":
        return "Tiered storage is not available here: remote.storage.enable cannot be true."
    shortest, longest = int(effective("min.compaction.lag.ms")), int(effective("max.compaction.lag.ms"))
    if shortest > longest:
        return f"min.compaction.lag.ms ({shortest}) is larger than max.compaction.lag.ms ({longest})"
    return None
