# SPDX-License-Identifier: Apache-2.0
"""Lists, describes and changes the topics of a cluster.

Uses Metadata, ListOffsets and DescribeConfigs, and at the controller CreateTopics, CreatePartitions,
IncrementalAlterConfigs and DeleteTopics.
"""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import msgspec

from coordinator.cli.cluster import partition_offsets
from coordinator.cli.cluster.client import Client, RefusedAnswer
from coordinator.cli.cluster.connection import NodeConnection
from coordinator.cluster_requests.model import TopicPartition
from coordinator.cluster_requests.request import make_plain_request
from coordinator.cluster_requests.retrying import RetryLater
from coordinator.cluster_requests.topics import END, START
from protocol.apis import ApiKey
from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from protocol.kafka_python_messages import MetadataResponse

    SeenTopic = MetadataResponse.MetadataResponseTopic
    SeenPartition = SeenTopic.MetadataResponsePartition

TOPIC_RESOURCE: Final = 2
SET_ON_TOPIC: Final = 1
"""The source of a setting that was set on this topic (DYNAMIC_TOPIC_CONFIG)."""
SET, DELETE = range(2)
"""The operations of IncrementalAlterConfigs that commands use (AlterConfigOp.OpType)."""
SERVER_TIMEOUT_MS: Final = 15_000
"""How long a controller may take to make a change visible."""
_USABLE: Final = (ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE)


class ListedTopic(msgspec.Struct, frozen=True):
    """One topic of `topics list`."""

    topic: str
    partitions: int
    is_internal: bool


class PartitionView(msgspec.Struct, frozen=True):
    """One partition; `leader` is -1 if there is none, `start` and `end` are None if they are not known."""

    partition: int
    leader: int
    replicas: list[int]
    in_sync: list[int]
    start: int | None
    end: int | None


class TopicDetails(msgspec.Struct, frozen=True):
    """One topic as the cluster describes it; `configs` are the settings that were set on the topic."""

    topic: str
    topic_id: str | None
    is_internal: bool
    configs: dict[str, str]
    partitions: list[PartitionView]


class NewTopic(msgspec.Struct, frozen=True):
    """A topic to create; -1 leaves a number to the cluster."""

    topic: str
    partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str] = {}


Answers = dict[str, RefusedAnswer | None]
"""The refusal by topic, None if the request was done."""


def list_topics(client: Client) -> list[ListedTopic]:
    """Return all topics of the cluster, in the order of their names."""
    found = [
        ListedTopic(name, len(topic.partitions), topic.is_internal)
        for name, topic in _usable(client, None).items()
    ]
    return sorted(found, key=lambda each: each.topic)


def _usable(client: Client, names: Sequence[str] | None) -> "dict[str, SeenTopic]":
    """Return the existing topics of these names, or all topics, by name."""
    from protocol.kafka_python_messages import topics_by_name

    found = topics_by_name(client.fetch_metadata(names))
    return {name: topic for name, topic in found.items() if topic.error_code in _USABLE}


def partition_counts(client: Client) -> dict[str, int]:
    """Return the number of partitions of each topic of the cluster."""
    return {each.topic: each.partitions for each in list_topics(client)}


def find_matching_topics(client: Client, patterns: Sequence[str]) -> dict[str, list[str]]:
    """Return the topics that each name or pattern stands for, none if there is no such topic."""
    known = partition_counts(client)
    return {
        pattern: [pattern] if pattern in known else [name for name in known if fnmatchcase(name, pattern)]
        for pattern in patterns
    }


def describe(client: Client, names: Sequence[str]) -> list[TopicDetails]:
    """Return the details of the existing topics of these names, in the order of the names."""
    topics = _usable(client, names)
    places = [
        TopicPartition(name, p.partition_index) for name, topic in topics.items() for p in topic.partitions
    ]
    starts = partition_offsets.select_known_offsets(partition_offsets.fetch_offsets_at(client, places, START))
    ended = partition_offsets.select_known_offsets(partition_offsets.fetch_offsets_at(client, places, END))
    configs = fetch_configs(client, list(topics))
    return [
        TopicDetails(
            name,
            _id(topic),
            topic.is_internal,
            configs.get(name, {}),
            sorted(
                (_partition(name, each, starts, ended) for each in topic.partitions),
                key=lambda view: view.partition,
            ),
        )
        for name, topic in sorted(topics.items())
    ]


def _id(topic: "SeenTopic") -> str | None:
    found = getattr(topic, "topic_id", None)
    return str(found) if isinstance(found, UUID) and found.int else None


def _partition(
    topic: str,
    each: "SeenPartition",
    starts: Mapping[TopicPartition, int],
    ended: Mapping[TopicPartition, int],
) -> PartitionView:
    place = TopicPartition(topic, each.partition_index)
    return PartitionView(
        each.partition_index,
        each.leader_id,
        list(each.replica_nodes),
        list(each.isr_nodes),
        starts.get(place),
        ended.get(place),
    )


def fetch_configs(client: Client, names: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return the settings that were set on each of these topics, without the defaults of the cluster."""
    from protocol.kafka_python_messages import DescribeConfigsRequest

    if not names:
        return {}
    kind = DescribeConfigsRequest.DescribeConfigsResource
    resources = [
        kind(resource_type=TOPIC_RESOURCE, resource_name=name, configuration_keys=None) for name in names
    ]
    request = DescribeConfigsRequest(resources=resources, include_synonyms=False, include_documentation=False)
    answer = client.bootstrap_connection().ask(make_plain_request(ApiKey.DESCRIBE_CONFIGS, request))
    return {
        each.resource_name: {
            config.name: "" if config.value is None else config.value
            for config in each.configs
            if config.config_source == SET_ON_TOPIC
        }
        for each in answer.results
    }


# --- changes ---


def create(client: Client, topics: Sequence[NewTopic]) -> Answers:
    """Create topics, and wait until they are created."""
    from protocol.kafka_python_messages import CreateTopicsRequest

    kind = CreateTopicsRequest.CreatableTopic
    wanted = [
        kind(
            name=each.topic,
            num_partitions=each.partitions,
            replication_factor=each.replication_factor,
            assignments=[],
            configs=[kind.CreatableTopicConfig(name=key, value=value) for key, value in each.configs.items()],
        )
        for each in topics
    ]
    request = CreateTopicsRequest(topics=wanted, timeout_ms=SERVER_TIMEOUT_MS, validate_only=False)
    return _change(
        client,
        "creating topics",
        lambda controller: controller.ask(make_plain_request(ApiKey.CREATE_TOPICS, request)).topics,
    )


def set_partitions(client: Client, counts: Mapping[str, int]) -> Answers:
    """Increase the number of partitions of topics to these counts."""
    from protocol.kafka_python_messages import CreatePartitionsRequest

    kind = CreatePartitionsRequest.CreatePartitionsTopic
    wanted = [kind(name=name, count=count, assignments=None) for name, count in counts.items()]
    request = CreatePartitionsRequest(topics=wanted, timeout_ms=SERVER_TIMEOUT_MS, validate_only=False)
    return _change(
        client,
        "adding partitions",
        lambda controller: controller.ask(make_plain_request(ApiKey.CREATE_PARTITIONS, request)).results,
    )


def alter_configs(
    client: Client, names: Sequence[str], changes: Mapping[str, str | None], *, validate_only: bool
) -> Answers:
    """Set these settings on each of the topics; None gives a setting its default again.

    With `validate_only` the cluster only checks the changes.
    """
    from protocol.kafka_python_messages import IncrementalAlterConfigsRequest

    kind = IncrementalAlterConfigsRequest.AlterConfigsResource
    resources = [
        kind(
            resource_type=TOPIC_RESOURCE,
            resource_name=topic,
            configs=[
                kind.AlterableConfig(
                    name=name, config_operation=DELETE if value is None else SET, value=value
                )
                for name, value in changes.items()
            ],
        )
        for topic in names
    ]
    request = IncrementalAlterConfigsRequest(resources=resources, validate_only=validate_only)
    return _change(
        client,
        "changing settings",
        lambda controller: (
            controller.ask(make_plain_request(ApiKey.INCREMENTAL_ALTER_CONFIGS, request)).responses
        ),
        name_field="resource_name",
    )


def delete(client: Client, names: Sequence[str]) -> Answers:
    """Delete the topics of these names."""
    from protocol.kafka_python_messages import DeleteTopicsRequest

    request = DeleteTopicsRequest(topic_names=list(names), timeout_ms=SERVER_TIMEOUT_MS)
    return _change(
        client,
        "deleting topics",
        lambda controller: controller.ask(make_plain_request(ApiKey.DELETE_TOPICS, request)).responses,
    )


def _change(client: Client, doing: str, ask: Any, name_field: str = "name") -> Answers:
    def attempt() -> Answers:
        controller: NodeConnection = client.connect_to_controller()
        answers = ask(controller)
        if any(each.error_code == ErrorCode.NOT_CONTROLLER for each in answers):
            raise RetryLater(doing, ErrorCode.NOT_CONTROLLER)
        return {getattr(each, name_field): _refused(each) for each in answers}

    return client.call_with_retries(attempt)


def _refused(answer: Any) -> RefusedAnswer | None:
    if answer.error_code == ErrorCode.NONE:
        return None
    return RefusedAnswer(answer.error_code, getattr(answer, "error_message", None))
