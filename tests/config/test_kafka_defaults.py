# SPDX-License-Identifier: Apache-2.0
"""The defaults of settings that Kafka has too are those of a running Kafka."""

import msgspec
import pytest
from confluent_kafka.admin import AdminClient, ConfigEntry, ConfigResource, ConfigSource

from coordinator.config import Settings
from coordinator.config.values import setting_kind
from tests.kafka.broker import KafkaBroker

DIFFERENT_ON_PURPOSE = {
    "node.id": "has no default in Kafka",
    "log.flush.interval.ms": "Kafka has none and leaves it to the system; ours counts only with log.flush = interval",
    "offsets.topic.compression.codec": "Kafka has numbers here, checked below",
}
TOPIC_SETTINGS = {  # what a topic's setting is called in a broker's configuration
    "segment.ms": None,  # log.roll.hours
    "min.cleanable.dirty.ratio": "log.cleaner.min.cleanable.ratio",
    "delete.retention.ms": "log.cleaner.delete.retention.ms",
    "min.compaction.lag.ms": "log.cleaner.min.compaction.lag.ms",
    "max.compaction.lag.ms": "log.cleaner.max.compaction.lag.ms",
}


@pytest.fixture(scope="module")
def kafkas(kafka_broker: KafkaBroker) -> dict[str, ConfigEntry]:
    """What the broker says of its configuration."""
    resource = ConfigResource(ConfigResource.Type.BROKER, "1")
    client = AdminClient({"bootstrap.servers": kafka_broker.bootstrap})
    (answer,) = client.describe_configs([resource]).values()
    configs: dict[str, ConfigEntry] = answer.result(120)
    return configs


def default_of(entry: ConfigEntry) -> str:
    """The default, whether or not the test broker overrides it."""
    values = [
        told.value
        for told in (entry, *entry.synonyms.values())
        if ConfigSource(told.source) is ConfigSource.DEFAULT_CONFIG
    ]
    return str(values[0])


@pytest.mark.kafka
def test_our_defaults_are_kafkas(kafkas: dict[str, ConfigEntry]) -> None:
    compared = {}
    for field in msgspec.structs.fields(Settings):
        name = TOPIC_SETTINGS.get(field.encode_name, field.encode_name)
        if name in kafkas and field.encode_name not in DIFFERENT_ON_PURPOSE:
            theirs = setting_kind(field.type).read(default_of(kafkas[name]))
            compared[field.encode_name] = (field.default, theirs)
    assert {name: pair for name, pair in compared.items() if pair[0] != pair[1]} == {}
    assert len(compared) >= 25, sorted(compared)


@pytest.mark.kafka
def test_segments_roll_after_a_week_and_are_not_compressed(kafkas: dict[str, ConfigEntry]) -> None:
    assert int(default_of(kafkas["log.roll.hours"])) * 3_600_000 == Settings().segment_ms
    assert default_of(kafkas["offsets.topic.compression.codec"]) == "0"
