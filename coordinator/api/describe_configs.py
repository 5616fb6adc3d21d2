# SPDX-License-Identifier: Apache-2.0
"""The handler of DescribeConfigs v1-v4. v1: synonyms, sources. v3: types and documentation (KIP-569). v4: flexible.

The response describes topics and this node (a BROKER to Kafka). The node's settings are read-only. A whole cluster,
loggers, client metrics and groups have no settings.
"""

from collections.abc import Iterable
from typing import Final

from coordinator.api.context import ParkedSentinel, RequestContext
from coordinator.api.declaration import Api
from coordinator.api.slices import cast_as_list, respond_in_slices
from coordinator.catalogue.config_description import DescribedConfig, node_configs, topic_configs
from coordinator.catalogue.names import invalid_reason
from coordinator.catalogue.topic import NO_ERROR, Refusal
from coordinator.node import Node
from protocol.apis import VersionRange
from protocol.bounds import LISTS
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import DescribeConfigsRequest, DescribeConfigsResponse, build_schema

TOPIC: Final = 2
BROKER: Final = 4
DescribeConfigsResource = DescribeConfigsRequest.DescribeConfigsResource
DescribeConfigsResult = DescribeConfigsResponse.DescribeConfigsResult
DescribeConfigsResourceResult = DescribeConfigsResult.DescribeConfigsResourceResult

OTHER_TYPES: Final = {8: "loggers", 16: "client metrics", 32: "groups"}


def handle(node: Node, request: DescribeConfigsRequest, ctx: RequestContext) -> ParkedSentinel:
    """Describe each resource by itself; refuse the whole request if Kafka does not know the type of one."""
    version = ctx.api_version
    if any(each.resource_type not in (TOPIC, BROKER, *OTHER_TYPES) for each in request.resources):
        unknown = Refusal(ErrorCode.INVALID_REQUEST, "There is a resource of an unknown type in the request.")
        return respond_in_slices(node, ctx, _all_refused(request, unknown, version))
    results = (_describe(node, request, each, version) for each in request.resources)
    return respond_in_slices(
        node, ctx, DescribeConfigsResponse(version=version, results=cast_as_list(results))
    )


def error_response(
    request: DescribeConfigsRequest, error: ErrorCode, version: int
) -> DescribeConfigsResponse:
    """Return the response with one error for every resource."""
    response = _all_refused(request, Refusal(error), version)
    response.results = list(response.results)
    return response


def _all_refused(request: DescribeConfigsRequest, refusal: Refusal, version: int) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(
        version=version,
        results=cast_as_list(_result(each, refusal, [], version) for each in request.resources),
    )


def _describe(
    node: Node, request: DescribeConfigsRequest, wanted: DescribeConfigsResource, version: int
) -> DescribeConfigsResult:
    found = _find(node, wanted.resource_type, wanted.resource_name)
    if isinstance(found, Refusal):
        return _result(wanted, found, [], version)
    keys = set(wanted.configuration_keys or ())
    configs = [_config(config, request, version) for config in found if not keys or config.name in keys]
    return _result(wanted, NO_ERROR, configs, version)


def _find(node: Node, resource_type: int, name: str) -> Iterable[DescribedConfig] | Refusal:
    if resource_type == TOPIC:
        topic = node.catalogue.get(name)
        if topic is not None:
            return topic_configs(topic, node.settings)
        if reason := invalid_reason(name):
            return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if resource_type == BROKER:
        return _find_broker(node, name)
    return Refusal(ErrorCode.INVALID_REQUEST, f"There are no settings of {OTHER_TYPES[resource_type]} here.")


def _find_broker(node: Node, name: str) -> Iterable[DescribedConfig] | Refusal:
    if not name:
        return ()  # the settings made at run time for all brokers: none
    try:
        broker_id = int(name)
    except ValueError:
        return Refusal(ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}")
    if broker_id != node.node_id:
        return Refusal(
            ErrorCode.INVALID_REQUEST,
            f"Unexpected broker id, expected {node.node_id} or empty string, but received {name}",
        )
    return node_configs(node.settings)


def _config(
    config: DescribedConfig, request: DescribeConfigsRequest, version: int
) -> DescribeConfigsResourceResult:
    synonyms = [
        DescribeConfigsResourceResult.DescribeConfigsSynonym(
            version=version, name=synonym.name, value=synonym.value, source=synonym.source
        )
        for synonym in config.synonyms
    ]
    return DescribeConfigsResourceResult(
        version=version,
        name=config.name,
        value=config.value,
        read_only=config.is_read_only,
        config_source=config.source,
        synonyms=synonyms if request.include_synonyms else [],
        config_type=config.type,
        documentation=config.documentation if request.include_documentation else None,
    )


def _result(
    wanted: DescribeConfigsResource,
    refusal: Refusal,
    configs: list[DescribeConfigsResourceResult],
    version: int,
) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        version=version,
        error_code=refusal.error,
        error_message=refusal.truncated_message or "",
        resource_type=wanted.resource_type,
        resource_name=wanted.resource_name,
        configs=configs,
    )


API: Final = Api(
    build_schema(DescribeConfigsRequest, DescribeConfigsResponse),
    versions=VersionRange(1, 4),
    handle=handle,
    error_response=error_response,
    frame=LISTS,
    changes=False,
    error_parts=("results",),
)
