# SPDX-License-Identifier: Apache-2.0
"""The handler of CreateTopics v2-v7.

v5: flexible; partitions, replication factor and configs in the response (KIP-525). v6: quota errors (KIP-599),
which never occur here. v7: topic id (KIP-516).

The timeout is ignored: the response is sent as soon as the topics are on disk. Kafka refuses a request with a
timeout of 0.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from coordinator.api.context import ParkedSentinel, RequestContext
from coordinator.api.declaration import Api
from coordinator.api.slices import cast_as_list
from coordinator.api.topic_changes import change_and_answer, find_repeat_refusals, find_replica_refusal
from coordinator.catalogue.config_values import ConfigSource
from coordinator.catalogue.steps import COUNTED_PER_STEP, Steps, iterate_in_steps
from coordinator.catalogue.topic import Refusal, Topic
from coordinator.catalogue.topic_configs import TOPIC_CONFIGS, refusal_reason
from coordinator.catalogue.topics import MutableTopics
from coordinator.node import Node
from coordinator.topology.view import ClusterTopology
from protocol.apis import VersionRange
from protocol.bounds import LISTS
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import CreateTopicsRequest, CreateTopicsResponse, build_schema

CONFIGS_FROM: Final = 5

REPLICATION_FACTOR: Final = 1
UNSET: Final = -1

CreatableTopic = CreateTopicsRequest.CreatableTopic

Created = dict[str, Topic | Refusal]


def handle(node: Node, request: CreateTopicsRequest, ctx: RequestContext) -> ParkedSentinel:
    """Create topics; a refused topic does not stop the others."""
    version = ctx.api_version

    def edit(catalogue: MutableTopics) -> Steps[Created]:
        return _create_all(node, catalogue, request.topics)

    def respond(outcome: Created) -> CreateTopicsResponse:
        results = (_result(name, outcome[name], version) for name in outcome)
        return CreateTopicsResponse(version=version, topics=cast_as_list(results))

    def refuse(error: ErrorCode) -> CreateTopicsResponse:
        return _refused(request, error, version)

    return change_and_answer(node, ctx, edit, respond, refuse, validate_only=request.validate_only)


def error_response(request: CreateTopicsRequest, error: ErrorCode, version: int) -> CreateTopicsResponse:
    """Return the response with one error for every topic."""
    response = _refused(request, error, version)
    response.topics = list(response.topics)
    return response


def _refused(request: CreateTopicsRequest, error: ErrorCode, version: int) -> CreateTopicsResponse:
    refusal = Refusal(error)
    return CreateTopicsResponse(
        version=version,
        topics=cast_as_list(_result(topic.name, refusal, version) for topic in request.topics),
    )


def _create_all(node: Node, catalogue: MutableTopics, wanted: Sequence[CreatableTopic]) -> Steps[Created]:
    """Return results by name: in the order of the request, repeated names last (ControllerApis.createTopics)."""
    refused = yield from find_repeat_refusals(topic.name for topic in wanted)
    default = node.settings.num_partitions
    outcome: Created = {}
    most = catalogue.limits.partitions_per_request
    too_many = (yield from _all_partitions(wanted, default)) > most
    for topic in iterate_in_steps(wanted):
        if topic is None or topic.configs:
            yield
        if topic is None or topic.name in refused:
            continue
        refusal = _refuse(topic, catalogue, node.cluster)
        if refusal is None and too_many:
            refusal = Refusal(
                ErrorCode.POLICY_VIOLATION,
                f"One request may make {most} partitions (max.partitions.per.request), and this one wants more.",
            )
        outcome[topic.name] = refusal or catalogue.add_topic(
            topic.name,
            _partitions(topic, default),
            topic_id=node.catalogue_store.new_topic_id(),
            configs=_given(topic),
        )
    return outcome | refused


def _all_partitions(wanted: Sequence[CreatableTopic], default: int) -> Steps[int]:
    count = 0
    for topic in iterate_in_steps(wanted, COUNTED_PER_STEP):
        if topic is None:
            yield
        else:
            count += _partitions(topic, default)
    return count


def _partitions(topic: CreatableTopic, default: int) -> int:
    if topic.assignments:
        return len(topic.assignments)
    return default if topic.num_partitions == UNSET else max(topic.num_partitions, 0)


def _refuse(topic: CreatableTopic, catalogue: MutableTopics, cluster: ClusterTopology) -> Refusal | None:
    """Return why a topic cannot be created, checked in Kafka's order (ReplicationControlManager); None if it can."""
    return (
        catalogue.find_creation_refusal(topic.name)
        or _refuse_configs(topic)
        or (_refuse_assignments(topic, cluster) if topic.assignments else _refuse_counts(topic))
    )


def _refuse_configs(topic: CreatableTopic) -> Refusal | None:
    nulls = [config.name for config in topic.configs if config.value is None]
    if nulls:
        reason: str | None = f"Null value not supported for topic configs: {','.join(nulls)}"
    else:
        reason = refusal_reason(_given(topic))
    return Refusal(ErrorCode.INVALID_CONFIG, reason) if reason else None


def _given(topic: CreatableTopic) -> dict[str, str]:
    """Return the settings of a new topic that have a value; `_refuse_configs` refuses the others."""
    return {config.name: config.value for config in topic.configs if config.value is not None}


def _refuse_counts(topic: CreatableTopic) -> Refusal | None:
    factor = topic.replication_factor
    if factor == 0 or factor < UNSET:
        return Refusal(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if topic.num_partitions == 0 or topic.num_partitions < UNSET:
        return Refusal(ErrorCode.INVALID_PARTITIONS, "Number of partitions must be larger than 0, or -1.")
    if factor > REPLICATION_FACTOR:
        return Refusal(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {factor} time(s): only 1 broker is registered.",
        )
    return None


def _refuse_assignments(topic: CreatableTopic, cluster: ClusterTopology) -> Refusal | None:
    if topic.replication_factor != UNSET or topic.num_partitions != UNSET:
        return Refusal(
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment needs -1 as replication factor and as number of partitions.",
        )
    seen: set[int] = set()
    for assignment in topic.assignments:
        if assignment.partition_index in seen:
            return Refusal(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Found multiple manual partition assignments for partition {assignment.partition_index}",
            )
        if refusal := find_replica_refusal(assignment.broker_ids, cluster):
            return refusal
        seen.add(assignment.partition_index)
    if seen != set(range(len(seen))):
        return Refusal(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Partitions must be numbered 0, 1, 2 and so on without gaps.",
        )
    return None


def _result(name: str, outcome: Topic | Refusal, version: int) -> CreateTopicsResponse.CreatableTopicResult:
    if isinstance(outcome, Refusal):
        return CreateTopicsResponse.CreatableTopicResult(
            version=version,
            name=name,
            error_code=outcome.error,
            error_message=outcome.truncated_message,
            configs=[],
        )
    return CreateTopicsResponse.CreatableTopicResult(
        version=version,
        name=name,
        topic_id=outcome.uuid,
        error_message=None,
        num_partitions=outcome.partitions,
        replication_factor=REPLICATION_FACTOR,
        configs=_configs(outcome.configs, version) if version >= CONFIGS_FROM else [],
    )


def _configs(
    configs: Mapping[str, str], version: int
) -> list[CreateTopicsResponse.CreatableTopicResult.CreatableTopicConfigs]:
    """Return Kafka's settings of a new topic and those of our own that are set, as they were written."""
    return [
        CreateTopicsResponse.CreatableTopicResult.CreatableTopicConfigs(
            version=version,
            name=key.name,
            value=configs.get(key.name, key.default),
            config_source=ConfigSource.TOPIC if key.name in configs else ConfigSource.DEFAULT,
        )
        for key in TOPIC_CONFIGS.values()
        if not key.ours or key.name in configs
    ]


API: Final = Api(
    build_schema(CreateTopicsRequest, CreateTopicsResponse),
    versions=VersionRange(2, 7),
    handle=handle,
    error_response=error_response,
    frame=LISTS,
    changes=True,
    error_parts=("topics",),
)
