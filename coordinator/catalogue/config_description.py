# SPDX-License-Identifier: Apache-2.0
"""The settings of a topic, and of the node, as DescribeConfigs returns them (Kafka's ConfigHelper)."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Final, NamedTuple, get_args, get_origin

import msgspec

from coordinator.catalogue.config_values import INT_MAX, ConfigSource, ConfigType
from coordinator.catalogue.names import OFFSETS_TOPIC
from coordinator.catalogue.topic import Topic
from coordinator.catalogue.topic_configs import TOPIC_CONFIGS, ConfigKey, canonicalize_value
from coordinator.config import Settings

_SIMPLE_TYPES: Final[Mapping[object, ConfigType]] = {bool: ConfigType.BOOLEAN, float: ConfigType.DOUBLE}


class Synonym(NamedTuple):
    """A source that has a value for the setting; the first of them counts."""

    name: str
    value: str
    source: ConfigSource


class DescribedConfig(NamedTuple):
    """A setting with its value, its source and its synonyms."""

    name: str
    value: str | None
    source: ConfigSource
    synonyms: tuple[Synonym, ...]
    is_read_only: bool
    type: ConfigType
    documentation: str


def topic_configs(topic: Topic, settings: Settings) -> Iterator[DescribedConfig]:
    """Yield all settings of a topic, in name order; our own settings only if they are set."""
    if topic.name == OFFSETS_TOPIC:
        values = _offsets_topic_values(settings)
    else:
        values = {name: canonicalize_value(name, text) for name, text in topic.configs.items()}
    for key in TOPIC_CONFIGS.values():
        if key.ours:
            yield from _own_config(key, values.get(key.name), settings)
        else:
            yield _topic_config(key, values.get(key.name))


def node_configs(settings: Settings) -> Iterator[DescribedConfig]:
    """Yield all settings of the node, in the order in which they are declared."""
    for field in msgspec.structs.fields(Settings):
        value, default = _text(getattr(settings, field.name)), _text(field.default)
        name = field.encode_name
        synonyms = []
        if value is not None and value != default:
            synonyms.append(Synonym(name, value, ConfigSource.STATIC_BROKER))
        if default is not None:
            synonyms.append(Synonym(name, default, ConfigSource.DEFAULT))
        yield DescribedConfig(
            name=name,
            value=value,
            source=ConfigSource.DEFAULT if value == default else ConfigSource.STATIC_BROKER,
            synonyms=tuple(synonyms),
            is_read_only=True,
            type=_type_of(field.type),
            documentation=_sentence_of(field.type),
        )


def _own_config(key: ConfigKey, value: str | None, settings: Settings) -> Iterator[DescribedConfig]:
    of_node = settings.end_group
    synonyms = [] if value is None else [Synonym(key.name, value, ConfigSource.TOPIC)]
    if of_node:
        synonyms.append(Synonym(key.broker_name or key.name, of_node, ConfigSource.STATIC_BROKER))
    if synonyms:
        yield _described(key, synonyms)


def _topic_config(key: ConfigKey, value: str | None) -> DescribedConfig:
    synonyms = []
    if value is not None:
        synonyms.append(Synonym(key.name, value, ConfigSource.TOPIC))
    if key.broker_name is not None:
        synonyms.append(Synonym(key.broker_name, key.default, ConfigSource.DEFAULT))
    return _described(key, synonyms)


def _described(key: ConfigKey, synonyms: list[Synonym]) -> DescribedConfig:
    return DescribedConfig(
        name=key.name,
        value=synonyms[0].value if synonyms else key.default,
        source=synonyms[0].source if synonyms else ConfigSource.DEFAULT,
        synonyms=tuple(synonyms),
        is_read_only=False,
        type=key.kind.type,
        documentation=key.documentation,
    )


def _offsets_topic_values(settings: Settings) -> Mapping[str, str]:
    """Return the settings of `__consumer_offsets`, which does hold data, by the node's settings."""
    fixed = {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": str(settings.offsets_topic_segment_bytes),
        "segment.ms": str(settings.segment_ms),
    }
    compaction = {
        "delete.retention.ms": str(settings.delete_retention_ms),
        "index.interval.bytes": str(settings.log_index_interval_bytes),
        "max.compaction.lag.ms": str(settings.max_compaction_lag_ms),
        "min.cleanable.dirty.ratio": str(settings.min_cleanable_dirty_ratio),
        "min.compaction.lag.ms": str(settings.min_compaction_lag_ms),
    }
    # A broker sets none of these for this topic: they are shown if they are not the defaults.
    return fixed | {name: text for name, text in compaction.items() if text != TOPIC_CONFIGS[name].default}


def _text(value: object) -> str | None:
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def _type_of(annotation: object) -> ConfigType:
    assert get_origin(annotation) is Annotated, f"{annotation} says nothing about itself"
    base, *extras = get_args(annotation)
    if base is int:
        highest = next(extra.le for extra in extras if isinstance(extra, msgspec.Meta))
        return ConfigType.INT if highest is not None and highest <= INT_MAX else ConfigType.LONG
    return _SIMPLE_TYPES.get(base, ConfigType.STRING)


def _sentence_of(annotation: object) -> str:
    return " ".join(extra for extra in get_args(annotation) if isinstance(extra, str))
