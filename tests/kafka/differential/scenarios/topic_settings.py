# SPDX-License-Identifier: Apache-2.0
"""The settings of topics: which there are, and which values of each are taken."""

from typing import Any, Final

from coordinator.catalogue.topic_configs import TOPIC_CONFIGS
from protocol.apis import ApiKey
from tests.kafka.differential.catalogue import scenario
from tests.kafka.differential.render import LEFT_OUT
from tests.kafka.differential.scenarios.topics import new_topic
from tests.kafka.differential.script import Script

NAMES: Final = [key.name for key in TOPIC_CONFIGS.values() if not key.ours]
VALUES: Final = (
    "", " ", "x", "true", "FALSE", "yes", "none",
    "-9223372036854775809", "-9223372036854775808", "-131073", "-131072", "-3", "-2", "-1", "0", "1", " 2 ", "4", "9",
    "17", "18", "22", "23", "1048575", "1048576", "2147483639", "2147483640", "2147483647", "2147483648",
    "9223372036854775807", "9223372036854775808", "0.5", "1.0", "1.5", "1e3", "+5", "0x10", "1_000",
    "delete", "compact", "compact,delete", "delete,delete", "delete,", "Delete",
    "gzip", "producer", "uncompressed", "CreateTime", "LogAppendTime", "createtime",
    "*", "0:1", "0:1,1:2", "0:1,*", "0:x",
)  # fmt: skip
"""On, beside and between the bounds of all settings, and what other settings take."""


@scenario(setting=NAMES)
def values(s: Script, setting: str) -> None:
    topics = [
        new_topic(s.id(f"t{number}"), configs=[{"name": setting, "value": value}])
        for number, value in enumerate(VALUES)
    ]
    answer = _created(s, topics)
    for value, each in zip(VALUES, answer, strict=True):
        s.note(f"{value!r}: {each.error_code}")


@scenario(
    chosen={
        "compaction lags cross": {"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "4"},
        "a copy lag beyond the local retention": {"local.retention.ms": "5", "remote.copy.lag.ms": "6"},
        "a copy lag beyond the local size": {"local.retention.bytes": "5", "remote.copy.lag.bytes": "6"},
        "a local retention beyond the whole": {"retention.ms": "5", "local.retention.ms": "6"},
        "a local size beyond the whole": {"retention.bytes": "5", "local.retention.bytes": "6"},
        "a record beyond its batch": {"max.message.bytes": "100", "max.decompressed.message.bytes": "50"},
        "tiered storage": {"remote.storage.enable": "true"},
        "tiered storage of what is compacted": {"remote.storage.enable": "true", "cleanup.policy": "compact"},
        "nothing copied": {"remote.log.copy.disable": "true"},
        "deleted when it is disabled": {"remote.log.delete.on.disable": "true"},
        "a name that is unknown": {"no.such.setting": "1"},
        "of brokers": {"log.retention.ms": "1"},
    }
)
def several(s: Script, chosen: dict[str, str]) -> None:
    configs = [{"name": name, "value": value} for name, value in chosen.items()]
    (answer,) = _created(s, [new_topic(s.id("t"), configs=configs)])
    s.note(f"error {answer.error_code}")


@scenario(
    differs="settings-without-meaning",
    chosen={
        "no number": {"min.cleanable.dirty.ratio": "NaN"},
        "internal": {"internal.segment.bytes": "1048576"},
    },
)
def without_meaning(s: Script, chosen: dict[str, str]) -> None:
    several(s, chosen)


@scenario()
def all_of_a_topic(s: Script) -> None:
    resource = {"resource_type": 2, "resource_name": "apples", "configuration_keys": None}
    with s.quietly():
        answer = s.connect().ask(
            ApiKey.DESCRIBE_CONFIGS, resources=[resource], include_synonyms=True, include_documentation=True
        )
    shown = [each for each in answer.results[0].configs if each.name not in LEFT_OUT]
    for each in sorted(shown, key=lambda config: str(config.name)):
        synonyms = [(one.name, one.value, one.source) for one in each.synonyms]
        s.note(
            f"{each.name} = {each.value!r}, type {each.config_type}, source {each.config_source}, {synonyms}"
        )


def _created(s: Script, topics: list[dict[str, Any]]) -> Any:
    with s.quietly():
        answer = s.connect().ask(ApiKey.CREATE_TOPICS, topics=topics, timeout_ms=30_000, validate_only=True)
    by_name = {each.name: each for each in answer.topics}
    return [by_name[each["name"]] for each in topics]
