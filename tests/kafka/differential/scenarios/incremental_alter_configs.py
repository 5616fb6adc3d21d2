# SPDX-License-Identifier: Apache-2.0
"""IncrementalAlterConfigs of topics: every operation, what is refused, and what the topic has then."""

from typing import Any

from protocol.apis import ApiKey
from tests.kafka.differential.catalogue import every, scenario
from tests.kafka.differential.ordinary import NO_TOPIC
from tests.kafka.differential.scenarios.topics import have_topic
from tests.kafka.differential.script import Link, Script
from tests.support.waiting import wait_until

ALTER = ApiKey.INCREMENTAL_ALTER_CONFIGS
TOPIC, BROKER = 2, 4
SET, DELETE, APPEND, SUBTRACT = range(4)


def alter(link: Link, version: int, *resources: dict[str, Any], validate_only: bool = False) -> None:
    link.ask(ALTER, version, resources=list(resources), validate_only=validate_only)


def changes(name: str, *configs: tuple[str, int, str | None], kind: int = TOPIC) -> dict[str, Any]:
    """What one resource is to have: (setting, operation, value)."""
    rows = [
        {"name": setting, "config_operation": operation, "value": value}
        for setting, operation, value in configs
    ]
    return {"resource_type": kind, "resource_name": name, "configs": rows}


def show(link: Link, topic: str, **expected: str) -> None:
    """The settings that were changed, once they are as expected: Kafka's controller tells its brokers later."""
    keys = ["cleanup.policy", "retention.ms", "segment.ms"]
    asked = {
        "resources": [{"resource_type": TOPIC, "resource_name": topic, "configuration_keys": keys}],
        "include_synonyms": False,
        "include_documentation": False,
    }

    def are_told() -> bool:
        with link.script.quietly():
            answer = link.ask(ApiKey.DESCRIBE_CONFIGS, 4, **asked)
        told = {config.name.replace(".", "_"): config.value for config in answer.results[0].configs}
        return all(told[name] == value for name, value in expected.items())

    wait_until(are_told, what=f"the settings {expected}")
    link.ask(ApiKey.DESCRIBE_CONFIGS, 4, **asked)


@scenario(version=every(ALTER))
def settings_are_set_and_unset(s: Script, version: int) -> None:
    a = s.connect()
    have_topic(s, a, "t", 1)
    name = s.id("t")
    alter(a, version, changes(name, ("retention.ms", SET, "5"), ("segment.ms", SET, "7")))
    show(a, name, retention_ms="5", segment_ms="7")
    alter(a, version, changes(name, ("retention.ms", DELETE, None), ("segment.ms", SET, "8")))
    show(a, name, retention_ms="604800000", segment_ms="8")
    alter(a, version, changes(name, ("retention.ms", DELETE, "what"), ("flush.ms", DELETE, None)))
    alter(a, version, changes(name))
    show(a, name)


@scenario(version=every(ALTER))
def lists_are_added_to_and_taken_from(s: Script, version: int) -> None:
    a = s.connect()
    have_topic(s, a, "t", 1)
    name = s.id("t")
    for operation, value, then in (
        (APPEND, "compact", "delete,compact"),
        (APPEND, "compact,delete", "delete,compact"),
        (SUBTRACT, "delete", "compact"),
        (SUBTRACT, "nope", "compact"),
        (APPEND, "nope", "compact"),
    ):
        alter(a, version, changes(name, ("cleanup.policy", operation, value)))
        show(a, name, cleanup_policy=then)


@scenario(version=every(ALTER))
def nothing_changes_when_it_is_only_validated(s: Script, version: int) -> None:
    a = s.connect()
    have_topic(s, a, "t", 1)
    alter(a, version, changes(s.id("t"), ("retention.ms", SET, "5")), validate_only=True)
    alter(a, version, changes(s.id("t"), ("retention.ms", SET, "x")), validate_only=True)
    show(a, s.id("t"))


@scenario(version=every(ALTER))
def changes_of_settings_that_are_refused(s: Script, version: int) -> None:
    a = s.connect()
    have_topic(s, a, "t", 1)
    name = s.id("t")
    good = ("segment.ms", SET, "7")
    for bad in (
        ("retention.ms", SET, "x"),
        ("retention.ms", SET, None),
        ("retention.ms", APPEND, "5"),
        ("retention.ms", SUBTRACT, None),
        ("nope", SET, "5"),
        ("nope", DELETE, None),
        ("nope", APPEND, "5"),
        ("", SET, "5"),
    ):
        alter(a, version, changes(name, bad, good))
    alter(a, version, changes(name, good, ("segment.ms", SET, "8")))
    show(a, name, segment_ms="7")


@scenario(version=every(ALTER))
def resources_that_cannot_be_changed(s: Script, version: int) -> None:
    a = s.connect()
    have_topic(s, a, "t", 1)
    good = ("segment.ms", SET, "7")
    alter(a, version, changes(NO_TOPIC, good))
    alter(a, version, changes("a b", good))
    alter(a, version, changes(s.id("t"), good), changes(NO_TOPIC, good))
    alter(a, version, changes(s.id("t"), good), changes(s.id("t"), good))
    alter(a, version)
    show(a, s.id("t"), segment_ms="7")


@scenario(version=every(ALTER), kind=[-128, 0, 1, 3, 127])
def changes_of_unknown_resources(s: Script, version: int, kind: int) -> None:
    alter(s.connect(), version, changes("1", ("retention.ms", SET, "5"), kind=kind))


@scenario(differs="settings-of-the-node", version=every(ALTER), name=["", "1"])
def changes_of_the_nodes_settings(s: Script, version: int, name: str) -> None:
    change = changes(name, ("log.cleaner.backoff.ms", SET, "15000"), kind=BROKER)
    alter(s.connect(), version, change, validate_only=True)


@scenario(differs="unknown-changes-of-settings", version=every(ALTER), operation=[-128, -1, 4, 127])
def changes_that_do_not_exist(s: Script, version: int, operation: int) -> None:
    a = s.connect()
    have_topic(s, a, "t", 1)
    alter(a, version, changes(s.id("t"), ("retention.ms", operation, "5")))
