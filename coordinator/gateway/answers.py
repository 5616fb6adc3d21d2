# SPDX-License-Identifier: Apache-2.0
"""Answers that are made in the gateway, as whole frames."""

from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from coordinator.api import (
    api_versions,
    consumer_group_heartbeat,
    delete_groups,
    describe_groups,
    find_coordinator,
    heartbeat,
    join_group,
    leave_group,
    list_groups,
    offset_commit,
    offset_delete,
    offset_fetch,
    sync_group,
)
from coordinator.api.handled import VersionedApi
from coordinator.api.table import AnyApi, Capabilities
from coordinator.gateway.routing import with_length
from protocol.apis import ApiKey, VersionRange
from protocol.codecs import codec_for
from protocol.errors import ErrorCode
from protocol.headers import decode_request_header, encode_response, has_flexible_response_header, route_of
from protocol.messages import DescribeConfigsRequest, DescribeConfigsResponse, classes

MEMBERS: Final[tuple[AnyApi, ...]] = (
    join_group.API,
    sync_group.API,
    heartbeat.API,
    leave_group.API,
    offset_commit.API,
    offset_fetch.API,
    describe_groups.API,
    delete_groups.API,
    offset_delete.API,
)
"""What only the coordinator of a group answers."""
COORDINATED: Final[tuple[AnyApi, ...]] = (*MEMBERS, list_groups.API)
"""What our nodes answer."""
REFUSED: Final[tuple[AnyApi, ...]] = (consumer_group_heartbeat.API,)
"""What is refused on every port, whatever the brokers say to it. No permission is asked for, as at a Kafka that has no
groups of KIP-848."""
NO_DIRECTORY: Final = "no-records"
"""A directory of our nodes for those who ask: Java's clients take a node without any for one that refuses to say."""
NOT_SET_HERE: Final = (
    "{} is a node of a gateway: its settings are in its own configuration file, and brokers have other ids"
)
"""The error message for a setting of a node."""
DELETE: Final = 1
"""The operation of IncrementalAlterConfigs that takes a setting away."""
DECLARED: Final = Capabilities((*COORDINATED, *REFUSED, find_coordinator.API))


def handled(frame: bytes) -> VersionedApi:
    """The declaration of the api and version of a request; it is one of `DECLARED`."""
    return DECLARED.routes[route_of(frame)]


def versions(apis: tuple[AnyApi, ...]) -> dict[int, VersionRange]:
    """What ApiVersions says of these apis."""
    keys = {int(api.key) for api in apis}
    return {offer.key: VersionRange(offer.min, offer.max) for offer in DECLARED.offers if offer.key in keys}


def decoded(frame: bytes) -> Any:
    """The request of a frame, one of `DECLARED`. Raises ProtocolError."""
    api = handled(frame)
    _, pos = decode_request_header(frame, api.flexible)
    return api.decode(frame, pos)


def answer(frame: bytes, response: object) -> bytes:
    """The answer with this response to a request, one of `DECLARED`."""
    api = handled(frame)
    header, _ = decode_request_header(frame, api.flexible)
    if api.adapt is not None:
        response = api.adapt(response, header.api_version)
    return encode_response(header.correlation_id, api.encode(response), api.flexible_response)


def request(frame: bytes, changed: object) -> bytes:
    """Make the request that is sent in place of this one, with its length and header. Raises ProtocolError."""
    codec = codec_for(route_of(frame) >> 16, route_of(frame) & 0xFFFF)
    _, pos = decode_request_header(frame, codec.flexible)
    return with_length(frame[:pos] + codec.encode_request(changed))


def refusal(frame: bytes, error: ErrorCode) -> bytes:
    """The answer with this error wherever the request, one of `DECLARED`, would have got an answer.

    Raises ProtocolError for bytes that are no request.
    """
    return answer(frame, handled(frame).error_response(decoded(frame), error, route_of(frame) & 0xFFFF))


def forwarded(frame: bytes) -> Any:
    """The request of a frame that any broker may get. Raises ProtocolError."""
    codec = codec_for(route_of(frame) >> 16, route_of(frame) & 0xFFFF)
    _, pos = decode_request_header(frame, codec.flexible)
    return codec.decode_request(frame, pos)


def with_body(frame: bytes, body: bytes) -> bytes:
    """The answer with this body to a request that any broker may get. Raises ProtocolError."""
    api_key = route_of(frame) >> 16
    flexible = codec_for(api_key, route_of(frame) & 0xFFFF).flexible
    header, _ = decode_request_header(frame, flexible)
    return encode_response(header.correlation_id, body, has_flexible_response_header(api_key, flexible))


def empty(frame: bytes) -> bytes:
    """The answer that has nothing in it, neither items nor an error. Raises ProtocolError."""
    return with_body(frame, _empty_body(ApiKey(route_of(frame) >> 16), route_of(frame) & 0xFFFF))


@cache
def _empty_body(api_key: ApiKey, version: int) -> bytes:
    make: Any = classes(api_key)[1]
    if api_key is ApiKey.DESCRIBE_LOG_DIRS:
        directory = make.DescribeLogDirsResult(version=version, error_code=0, log_dir=NO_DIRECTORY, topics=[])
        fields = {"results": [directory]}
    elif api_key is ApiKey.LIST_TRANSACTIONS:
        fields = {"unknown_state_filters": [], "transaction_states": []}
    else:
        fields = {"groups": []}
    return codec_for(api_key, version).encode_response(make(version=version, **fields))


def nothing_set(frame: bytes, resources: Sequence[DescribeConfigsRequest.DescribeConfigsResource]) -> bytes:
    """The answer to a DescribeConfigs of these resources that none of them has a setting. Raises ProtocolError."""
    version = route_of(frame) & 0xFFFF
    results = [
        DescribeConfigsResponse.DescribeConfigsResult(
            version=version,
            error_code=0,
            error_message=None,
            resource_type=each.resource_type,
            resource_name=each.resource_name,
            configs=[],
        )
        for each in resources
    ]
    response = DescribeConfigsResponse(version=version, throttle_time_ms=0, results=results)
    return with_body(frame, codec_for(ApiKey.DESCRIBE_CONFIGS, version).encode_response(response))


def nothing_altered(frame: bytes, resources: Sequence[Any]) -> bytes:
    """The answer to an IncrementalAlterConfigs of these nodes of ours. Raises ProtocolError.

    To take settings away is done at once, since none is set: kafka-reassign-partitions does so at every node when it
    ends a throttle, and stops at the first that refuses. To set one is INVALID_REQUEST.
    """
    version = route_of(frame) & 0xFFFF
    kind: Any = classes(ApiKey.INCREMENTAL_ALTER_CONFIGS)[1]
    refused = [any(each.config_operation != DELETE for each in resource.configs) for resource in resources]
    responses = [
        kind.AlterConfigsResourceResponse(
            version=version,
            error_code=ErrorCode.INVALID_REQUEST if refusal else ErrorCode.NONE,
            error_message=NOT_SET_HERE.format(resource.resource_name) if refusal else None,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )
        for resource, refusal in zip(resources, refused, strict=True)
    ]
    response = kind(version=version, throttle_time_ms=0, responses=responses)
    return with_body(frame, codec_for(ApiKey.INCREMENTAL_ALTER_CONFIGS, version).encode_response(response))


def unknown_api_versions(frame: bytes) -> bytes:
    """The answer to an ApiVersions that is newer than ours, in version 0 (KIP-511). Raises ProtocolError."""
    header, _ = decode_request_header(frame, False)
    make = api_versions.API.schema.response
    low, high = api_versions.API.versions
    offer = make.ApiVersion(version=0, api_key=ApiKey.API_VERSIONS, min_version=low, max_version=high)
    response = make(version=0, error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[offer])
    body = codec_for(ApiKey.API_VERSIONS, 0).encode_response(response)
    return encode_response(header.correlation_id, body, False)
