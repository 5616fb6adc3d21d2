# SPDX-License-Identifier: Apache-2.0
"""DescribeConfigs, at every version."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from coordinator.catalogue.names import OFFSETS_TOPIC
from coordinator.catalogue.topic_configs import END_GROUP, TOPIC_CONFIGS
from coordinator.config import Settings
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import CreateTopicsRequest, DescribeConfigsRequest
from tests.api.asking import FakeNode, error_response_of, versions

KEY = ApiKey.DESCRIBE_CONFIGS
EVERY_VERSION = pytest.mark.parametrize("version", versions(KEY))
TOPIC, BROKER = 2, 4
FROM_TOPIC, FROM_START, FROM_DEFAULT = 1, 4, 5
BOOLEAN, STRING, INT, LONG, DOUBLE, LIST = 1, 2, 3, 5, 6, 7
KAFKAS = sorted(key.name for key in TOPIC_CONFIGS.values() if not key.ours)


def request(
    *resources: tuple[int, str],
    keys: list[str] | None = None,
    synonyms: bool = True,
    documentation: bool = True,
) -> DescribeConfigsRequest:
    return DescribeConfigsRequest(
        resources=[
            DescribeConfigsRequest.DescribeConfigsResource(
                resource_type=kind, resource_name=name, configuration_keys=keys
            )
            for kind, name in resources
        ],
        include_synonyms=synonyms,
        include_documentation=documentation,
    )


def only(response: Any) -> dict[str, Any]:
    (result,) = response.results
    assert (result.error_code, result.error_message) == (0, "")
    return {config.name: config for config in result.configs}


def create(node: FakeNode, name: str, configs: dict[str, str]) -> None:
    kind = CreateTopicsRequest.CreatableTopic
    rows = [kind.CreatableTopicConfig(name=key, value=value) for key, value in configs.items()]
    topic = kind(name=name, num_partitions=1, replication_factor=1, assignments=[], configs=rows)
    node.ask(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=[topic]))


@EVERY_VERSION
def test_a_topic_has_all_settings_with_value_and_source(node: FakeNode, version: int) -> None:
    create(node, "a", {"retention.ms": " 5 ", "compression.type": "lz4", "flush.ms": "1"})
    configs = only(node.ask(KEY, version, request((TOPIC, "a"))))
    assert list(configs) == KAFKAS
    assert not any(config.read_only or config.is_sensitive for config in configs.values())

    def shown(name: str) -> tuple[Any, ...]:
        config = configs[name]
        return config.value, config.config_source, [(s.name, s.value, s.source) for s in config.synonyms]

    assert shown("retention.ms") == ("5", FROM_TOPIC, [("retention.ms", "5", FROM_TOPIC)])
    assert shown("compression.type") == (
        "lz4",
        FROM_TOPIC,
        [("compression.type", "lz4", FROM_TOPIC), ("compression.type", "producer", FROM_DEFAULT)],
    )
    assert shown("segment.bytes") == (
        "1073741824",
        FROM_DEFAULT,
        [("log.segment.bytes", "1073741824", FROM_DEFAULT)],
    )
    assert shown("segment.ms") == ("604800000", FROM_DEFAULT, [])


@pytest.mark.parametrize("of_node", ["", "all makers"])
def test_the_end_group_is_shown_where_the_topic_or_the_node_names_one(tmp_path: Path, of_node: str) -> None:
    node = FakeNode(tmp_path, end_group=of_node or None)
    create(node, "a", {END_GROUP: "makers"})
    create(node, "b", {})
    from_node = [("end.group", "all makers", FROM_START)] if of_node else []
    config = only(node.ask(KEY, 4, request((TOPIC, "a"))))[END_GROUP]
    assert (config.value, config.config_source) == ("makers", FROM_TOPIC)
    assert [(s.name, s.value, s.source) for s in config.synonyms] == [
        (END_GROUP, "makers", FROM_TOPIC),
        *from_node,
    ]
    shown = only(node.ask(KEY, 4, request((TOPIC, "b")))).get(END_GROUP)
    assert (shown is not None) == bool(of_node)
    if shown is not None:
        assert (shown.value, shown.config_source) == ("all makers", FROM_START)


@EVERY_VERSION
def test_types_and_documentation_come_with_version_3(node: FakeNode, version: int) -> None:
    node.have(a=1)
    configs = only(node.ask(KEY, version, request((TOPIC, "a"))))
    types = {name: configs[name].config_type for name in ("preallocate", "compression.type", "segment.bytes")}
    assert types == (
        {"preallocate": BOOLEAN, "compression.type": STRING, "segment.bytes": INT}
        if version >= 3
        else dict.fromkeys(types, 0)
    )
    assert all(bool(config.documentation) == (version >= 3) for config in configs.values())
    assert configs["retention.ms"].config_type == (LONG if version >= 3 else 0)
    assert configs["min.cleanable.dirty.ratio"].config_type == (DOUBLE if version >= 3 else 0)
    assert configs["cleanup.policy"].config_type == (LIST if version >= 3 else 0)


@EVERY_VERSION
def test_synonyms_and_documentation_are_left_out_unless_asked_for(node: FakeNode, version: int) -> None:
    create(node, "a", {"retention.ms": "5"})
    configs = only(node.ask(KEY, version, request((TOPIC, "a"), synonyms=False, documentation=False)))
    assert all(config.synonyms == [] and not config.documentation for config in configs.values())
    assert configs["retention.ms"].config_source == FROM_TOPIC


@EVERY_VERSION
def test_only_the_keys_asked_for_are_told(node: FakeNode, version: int) -> None:
    node.have(a=1)
    wanted = ["retention.ms", "nope", "retention.ms"]
    assert list(only(node.ask(KEY, version, request((TOPIC, "a"), keys=wanted)))) == ["retention.ms"]
    assert len(only(node.ask(KEY, version, request((TOPIC, "a"), keys=[])))) == len(KAFKAS)
    assert list(only(node.ask(KEY, version, request((BROKER, "7"), keys=["node.id"])))) == ["node.id"]


def test_the_offsets_topic_shows_what_the_node_does_with_its_log(tmp_path: Path) -> None:
    node = FakeNode(tmp_path, offsets_topic_segment_bytes=12_345)
    configs = only(node.ask(KEY, 4, request((TOPIC, OFFSETS_TOPIC))))
    set_here = {name: config.value for name, config in configs.items() if config.config_source == FROM_TOPIC}
    assert set_here == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "12345",
        "segment.ms": "604800000",
    }


def test_the_offsets_topic_shows_how_it_is_compacted_where_that_is_not_kafkas_default(tmp_path: Path) -> None:
    node = FakeNode(tmp_path, min_cleanable_dirty_ratio=0.25, delete_retention_ms=7)
    configs = only(node.ask(KEY, 4, request((TOPIC, OFFSETS_TOPIC))))
    shown = {name: (config.value, config.config_source) for name, config in configs.items()}
    assert shown["min.cleanable.dirty.ratio"] == ("0.25", FROM_TOPIC)
    assert shown["delete.retention.ms"] == ("7", FROM_TOPIC)
    assert shown["max.compaction.lag.ms"][0] == "9223372036854775807"
    assert shown["max.compaction.lag.ms"][1] != FROM_TOPIC


@EVERY_VERSION
def test_the_node_has_all_its_settings_read_only(tmp_path: Path, version: int) -> None:
    node = FakeNode(tmp_path, num_partitions=6, auto_create_topics_enable=False)
    configs = only(node.ask(KEY, version, request((BROKER, "7"))))
    assert list(configs) == [field.encode_name for field in msgspec.structs.fields(Settings)]
    assert all(config.read_only and not config.is_sensitive for config in configs.values())

    def shown(name: str) -> tuple[Any, ...]:
        config = configs[name]
        return config.value, config.config_source, [(s.name, s.value, s.source) for s in config.synonyms]

    default = [("num.partitions", "1", FROM_DEFAULT)]
    assert shown("num.partitions") == ("6", FROM_START, [("num.partitions", "6", FROM_START), *default])
    assert shown("auto.create.topics.enable")[:2] == ("false", FROM_START)
    assert shown("group.min.session.timeout.ms") == (
        "6000",
        FROM_DEFAULT,
        [("group.min.session.timeout.ms", "6000", FROM_DEFAULT)],
    )
    assert shown("cluster.id") == (None, FROM_DEFAULT, [])
    if version >= 3:
        assert configs["num.partitions"].config_type == INT
        assert configs["connections.max.idle.ms"].config_type == LONG
        assert configs["auto.create.topics.enable"].config_type == BOOLEAN
        assert configs["log.flush"].config_type == configs["listen"].config_type == STRING
        assert all(config.documentation for config in configs.values())


@EVERY_VERSION
def test_nothing_is_set_for_a_whole_cluster(node: FakeNode, version: int) -> None:
    assert only(node.ask(KEY, version, request((BROKER, "")))) == {}


@EVERY_VERSION
@pytest.mark.parametrize(
    ("resource", "error", "message"),
    [
        ((TOPIC, "nope"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ""),
        ((TOPIC, "b d"), ErrorCode.INVALID_TOPIC_EXCEPTION, "Topic name is invalid"),
        ((BROKER, "8"), ErrorCode.INVALID_REQUEST, "expected 7 or empty string, but received 8"),
        ((BROKER, "x"), ErrorCode.INVALID_REQUEST, "must be an integer, but it is: x"),
        ((BROKER, "x" * 32_000), ErrorCode.INVALID_REQUEST, "must be an integer"),
        ((8, "7"), ErrorCode.INVALID_REQUEST, "loggers"),
        ((16, "s"), ErrorCode.INVALID_REQUEST, "client metrics"),
        ((32, "g"), ErrorCode.INVALID_REQUEST, "groups"),
    ],
)
def test_what_cannot_be_described_does_not_stop_the_rest(
    node: FakeNode, version: int, resource: tuple[int, str], error: ErrorCode, message: str
) -> None:
    node.have(a=1)
    refused, described = node.ask(KEY, version, request(resource, (TOPIC, "a"))).results
    assert (refused.error_code, refused.configs) == (error, [])
    assert message in refused.error_message
    assert (refused.resource_type, refused.resource_name) == resource
    assert (described.error_code, described.resource_name) == (0, "a")


@EVERY_VERSION
@pytest.mark.parametrize("kind", [0, 1, 3, 64, -1])
def test_a_kind_of_resource_that_is_none_spoils_the_request(node: FakeNode, version: int, kind: int) -> None:
    node.have(a=1)
    response = node.ask(KEY, version, request((kind, "g"), (TOPIC, "a")))
    assert [each.error_code for each in response.results] == [ErrorCode.INVALID_REQUEST] * 2


@EVERY_VERSION
def test_a_refused_request_has_the_error_for_every_resource(version: int) -> None:
    error = ErrorCode.UNKNOWN_SERVER_ERROR
    response = error_response_of(KEY, version, request((TOPIC, "a"), (BROKER, "7")), error)
    assert [(each.error_code, each.resource_name) for each in response.results] == [
        (error, "a"),
        (error, "7"),
    ]
