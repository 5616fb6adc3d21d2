# SPDX-License-Identifier: Apache-2.0
"""The limits on the topics of a cluster, and the totals that count against them. Existing topics are never refused."""

from typing import Final, NamedTuple

import msgspec

from coordinator.catalogue.topic import Refusal, Topic
from coordinator.config import Settings
from protocol.errors import ErrorCode

PARTITIONS_PER_TOPIC_MAX: Final = 100_000
"""librdkafka refuses the metadata of a topic with more, and with it that of all topics (RD_KAFKAP_PARTITIONS_MAX)."""


class TopicLimits(msgspec.Struct, frozen=True):
    """The limits of the catalogue; a refusal names the setting of its limit."""

    topics: int
    partitions: int
    partitions_per_request: int
    config_value_bytes: int
    config_bytes: int
    partitions_per_topic: int = PARTITIONS_PER_TOPIC_MAX
    """The maximum of one topic, which no setting raises."""

    @classmethod
    def from_settings(cls, settings: Settings) -> "TopicLimits":
        """Return the limits that these settings make."""
        return cls(
            topics=settings.max_topics,
            partitions=settings.max_partitions,
            partitions_per_request=settings.max_partitions_per_request,
            config_value_bytes=settings.topic_config_value_max_bytes,
            config_bytes=settings.topic_config_total_max_bytes,
        )

    def would_exceed(self, before: "Totals", after: "Totals") -> bool:
        """Return whether a total in `after` exceeds its limit and is larger than in `before`."""
        return (
            after.topics > max(before.topics, self.topics)
            or after.partitions > max(before.partitions, self.partitions)
            or after.config_bytes > max(before.config_bytes, self.config_bytes)
        )


DEFAULT_LIMITS: Final = TopicLimits.from_settings(Settings())
_UNBOUNDED: Final = 2**31 - 1
THE_CLUSTERS_OWN: Final = TopicLimits(_UNBOUNDED, _UNBOUNDED, _UNBOUNDED, _UNBOUNDED, _UNBOUNDED, _UNBOUNDED)
"""No limits, for the topics of a Kafka cluster, which has limits of its own."""


class Totals(msgspec.Struct):
    """The number of topics and partitions, and the bytes of settings, of all topics but the service's own."""

    topics: int = 0
    partitions: int = 0
    config_bytes: int = 0

    def add(self, topic: Topic, sign: int = 1) -> None:
        """Add a topic to the totals, or subtract it with a `sign` of -1."""
        self.topics += sign
        self.partitions += sign * topic.partitions
        self.config_bytes += sign * count_config_bytes(topic)


def count_config_bytes(topic: Topic) -> int:
    """Return the bytes of a topic's settings for `topic.config.total.max.bytes`: names and values in UTF-8."""
    return sum(len(name.encode()) + len(value.encode()) for name, value in topic.configs.items())


class LimitRefusal(NamedTuple):
    """A refusal by a limit: the setting of the limit, and the refusal, which names the setting."""

    limit: str
    refusal: Refusal


def find_new_topic_refusal(topic: Topic, totals: Totals, limits: TopicLimits) -> LimitRefusal | None:
    """Return a refusal if there is no room for this topic in addition to those in `totals`, else None."""
    if limited := _refuse_values(topic, limits):
        return limited
    if totals.topics >= limits.topics:
        return _refused("max.topics", f"There may be {limits.topics} topics, and there are {totals.topics}")
    return _refuse_more(count_config_bytes(topic), totals, limits) or find_added_partitions_refusal(
        topic.partitions, totals, limits
    )


def find_settings_refusal(
    before: Topic, after: Topic, totals: Totals, limits: TopicLimits
) -> LimitRefusal | None:
    """Return a refusal if there is no room for the settings of `after` in place of those of `before`, else None."""
    more = count_config_bytes(after) - count_config_bytes(before)
    return _refuse_values(after, limits) or _refuse_more(more, totals, limits)


def _refuse_values(topic: Topic, limits: TopicLimits) -> LimitRefusal | None:
    for name, value in topic.configs.items():
        if len(value.encode()) > limits.config_value_bytes:
            reason = f"The value of {name} is longer than {limits.config_value_bytes} bytes"
            return _refused("topic.config.value.max.bytes", reason, ErrorCode.INVALID_CONFIG)
    return None


def _refuse_more(more_bytes: int, totals: Totals, limits: TopicLimits) -> LimitRefusal | None:
    if more_bytes <= 0 or totals.config_bytes + more_bytes <= limits.config_bytes:
        return None
    reason = f"The settings of all topics may have {limits.config_bytes} bytes together, and these do not fit"
    return _refused("topic.config.total.max.bytes", reason)


def find_added_partitions_refusal(more: int, totals: Totals, limits: TopicLimits) -> LimitRefusal | None:
    """Return a refusal if there is no room for this many more partitions, else None."""
    if more > limits.partitions_per_request:
        reason = f"One request may make {limits.partitions_per_request} partitions, and not {more}"
        return _refused("max.partitions.per.request", reason)
    if totals.partitions + more > limits.partitions:
        reason = f"There may be {limits.partitions} partitions, and there are {totals.partitions} without these {more}"
        return _refused("max.partitions", reason)
    return None


def find_width_refusal(partitions: int, limits: TopicLimits) -> Refusal | None:
    """Return a refusal if a topic may not have this many partitions, else None."""
    most = limits.partitions_per_topic
    if partitions <= most:
        return None
    return Refusal(ErrorCode.INVALID_PARTITIONS, f"A topic may have {most} partitions, and not {partitions}.")


def _refused(setting: str, reason: str, error: ErrorCode = ErrorCode.POLICY_VIOLATION) -> LimitRefusal:
    return LimitRefusal(setting, Refusal(error, f"{reason} ({setting})."))
