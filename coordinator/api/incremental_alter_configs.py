# SPDX-License-Identifier: Apache-2.0
"""The handler of IncrementalAlterConfigs v0-v1 (KIP-339). v1: flexible.

It changes the settings of topics, each topic's by itself. The settings of a node can be changed only in its
configuration.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from coordinator.api.context import ParkedSentinel, RequestContext
from coordinator.api.declaration import Api
from coordinator.api.slices import cast_as_list
from coordinator.api.topic_changes import change_and_answer
from coordinator.catalogue.config_values import ConfigType
from coordinator.catalogue.names import invalid_reason
from coordinator.catalogue.steps import Steps, count_in_steps, iterate_in_steps
from coordinator.catalogue.topic import NO_ERROR, Refusal
from coordinator.catalogue.topic_configs import TOPIC_CONFIGS, refusal_reason
from coordinator.catalogue.topics import MutableTopics
from coordinator.node import Node
from protocol.apis import VersionRange
from protocol.bounds import LISTS
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    build_schema,
)

TOPIC: Final = 2
BROKER: Final = 4

SET, DELETE, APPEND, SUBTRACT = range(4)
CHANGES_OF_LISTS: Final[Mapping[int, str]] = {APPEND: "APPEND", SUBTRACT: "SUBTRACT"}

AlterConfigsResource = IncrementalAlterConfigsRequest.AlterConfigsResource
AlterableConfig = AlterConfigsResource.AlterableConfig

Altered = list[Refusal]
"""The outcome of each resource, in the order of the request."""


def handle(
    node: Node, request: IncrementalAlterConfigsRequest, ctx: RequestContext
) -> IncrementalAlterConfigsResponse | ParkedSentinel:
    """Change the settings of each topic: all that the request names for the topic, or none."""
    version = ctx.api_version

    def edit(topics: MutableTopics) -> Steps[Altered]:
        return _alter_all(topics, request.resources)

    def respond(outcome: Altered) -> IncrementalAlterConfigsResponse:
        return _response(request, outcome, version)

    def refuse(error: ErrorCode) -> IncrementalAlterConfigsResponse:
        return _response(request, [Refusal(error)] * len(request.resources), version)

    return change_and_answer(node, ctx, edit, respond, refuse, validate_only=request.validate_only)


def error_response(
    request: IncrementalAlterConfigsRequest, error: ErrorCode, version: int
) -> IncrementalAlterConfigsResponse:
    """Return the response with one error for every resource."""
    response = _response(request, [Refusal(error)] * len(request.resources), version)
    response.responses = list(response.responses)
    return response


def _alter_all(topics: MutableTopics, resources: Sequence[AlterConfigsResource]) -> Steps[Altered]:
    times = yield from count_in_steps((each.resource_type, each.resource_name) for each in resources)
    outcome = []
    for each in iterate_in_steps(resources):
        if each is None:
            yield
            continue
        if times[each.resource_type, each.resource_name] > 1:
            refusal: Refusal | None = _invalid("Each resource must appear at most once.")
        else:
            refusal = _refuse_request(each) or _alter(topics, each.resource_name, each.configs)
        outcome.append(refusal or NO_ERROR)
    return outcome


def _refuse_request(resource: AlterConfigsResource) -> Refusal | None:
    """Return the refusal by Kafka's broker, before its controller (ConfigAdminManager.preprocess), or None."""
    if resource.resource_type == BROKER:
        return _invalid("The settings of a node are in its configuration, and change when it starts.")
    if resource.resource_type != TOPIC:
        return _invalid(f"There are no settings of resources of type {resource.resource_type} here.")
    if max(Counter(config.name for config in resource.configs).values(), default=0) > 1:
        return _invalid("Error due to duplicate config keys")
    nulls = [each.name for each in resource.configs if each.value is None and each.config_operation != DELETE]
    if nulls:
        return _invalid(f"Null value not supported for : {','.join(nulls)}")
    return None


def _alter(topics: MutableTopics, name: str, changes: Sequence[AlterableConfig]) -> Refusal | None:
    """Change one topic, checked in the order of Kafka's controller (ConfigurationControlManager)."""
    topic = topics.get(name)
    configs = dict(topic.configs) if topic is not None else {}
    for change in changes:
        if refusal := _change(configs, change):
            return refusal
    if reason := invalid_reason(name):
        return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)
    if reason := refusal_reason(configs):
        return Refusal(ErrorCode.INVALID_CONFIG, reason)
    outcome = topics.replace_configs(name, configs)
    return outcome if isinstance(outcome, Refusal) else None


def _change(configs: dict[str, str], change: AlterableConfig) -> Refusal | None:
    operation, name, value = change.config_operation, change.name, change.value
    if operation == DELETE:
        configs.pop(name, None)
        return None
    assert value is not None, f"{name} has no value, and was not refused"
    if operation == SET:
        configs[name] = value
    elif operation not in CHANGES_OF_LISTS:
        return _invalid(f"Unknown operation type {operation}")
    else:
        key = TOPIC_CONFIGS.get(name)
        if key is None or key.kind.type is not ConfigType.LIST:
            reason = f"Can't {CHANGES_OF_LISTS[operation]} to key {name} because its type is not LIST."
            return Refusal(ErrorCode.INVALID_CONFIG, reason)
        words = [word for word in configs.get(name, key.default).split(",") if word]
        given = value.split(",")
        if operation == APPEND:
            words += [word for word in dict.fromkeys(given) if word not in words]
        else:
            words = [word for word in words if word not in given]
        configs[name] = ",".join(words)
    return None


def _invalid(reason: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, reason)


def _response(
    request: IncrementalAlterConfigsRequest, outcome: Altered, version: int
) -> IncrementalAlterConfigsResponse:
    kind = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse
    return IncrementalAlterConfigsResponse(
        version=version,
        responses=cast_as_list(
            kind(
                version=version,
                error_code=refusal.error,
                error_message=refusal.truncated_message,
                resource_type=each.resource_type,
                resource_name=each.resource_name,
            )
            for each, refusal in zip(request.resources, outcome, strict=True)
        ),
    )


API: Final = Api(
    build_schema(IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse),
    versions=VersionRange(0, 1),
    handle=handle,
    error_response=error_response,
    frame=LISTS,
    changes=True,
    error_parts=("responses",),
)
