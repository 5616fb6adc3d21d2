# SPDX-License-Identifier: Apache-2.0
"""Responses that are made in the gateway, as whole frames."""

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
from coordinator.api.single_api_version import SingleApiVersion
from coordinator.api.table import AnyApi, Capabilities
from coordinator.gateway.routing_types import with_length
from protocol.apis import ApiKey, VersionRange
from protocol.errors import ErrorCode
from protocol.headers import (
    decode_request_header,
    encode_response,
    has_flexible_response_header,
    read_api_key_and_version,
)
from protocol.kafka_python_messages import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    find_request_and_response_classes,
)
from protocol.message_codecs import find_message_codec

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
"""The apis that only the coordinator of a group answers."""
COORDINATED: Final[tuple[AnyApi, ...]] = (*MEMBERS, list_groups.API)
"""The apis that our nodes answer."""
REFUSED: Final[tuple[AnyApi, ...]] = (consumer_group_heartbeat.API,)
"""The apis that are refused on every port, even if the brokers have them.

No permission is asked for, as at a Kafka that has no groups of KIP-848.
"""
NO_DIRECTORY: Final = "no-records"
"""The log directory that our nodes report: Java's clients take a node without any for one that refuses to list them."""
NOT_SET_HERE: Final = (
    "{} is a node of a gateway: its settings are in its own configuration file, and brokers have other ids"
)
"""The error message for an attempt to set a configuration of a node of ours."""
DELETE: Final = 1
"""The operation of IncrementalAlterConfigs that removes a setting."""
DECLARED: Final = Capabilities((*COORDINATED, *REFUSED, find_coordinator.API))


def find_request_api(frame: bytes) -> SingleApiVersion:
    """Return the declaration of the api and version of a request, which is one of `DECLARED`."""
    return DECLARED.routes[read_api_key_and_version(frame)]


def get_our_offered_versions(apis: tuple[AnyApi, ...]) -> dict[int, VersionRange]:
    """Return the versions of these apis for ApiVersions."""
    keys = {int(api.key) for api in apis}
    return {
        offer.key: VersionRange(offer.min, offer.max)
        for offer in DECLARED.offered_versions
        if offer.key in keys
    }


def decode_coordinator_request(frame: bytes) -> Any:
    """Decode a request of `DECLARED`. Raises ProtocolError."""
    api = find_request_api(frame)
    _, pos = decode_request_header(frame, api.flexible)
    return api.decode(frame, pos)


def decode_client_id(frame: bytes) -> str:
    """Return the client id of a request of `DECLARED`; "" for none. Raises ProtocolError."""
    header, _ = decode_request_header(frame, find_request_api(frame).flexible)
    return header.client_id or ""


def encode_response_to_request(frame: bytes, response: object) -> bytes:
    """Return the frame of a response to a request of `DECLARED`."""
    api = find_request_api(frame)
    header, _ = decode_request_header(frame, api.flexible)
    if api.adapt is not None:
        response = api.adapt(response, header.api_version)
    return encode_response(header.correlation_id, api.encode(response), api.flexible_response)


def encode_changed_request(frame: bytes, changed: object) -> bytes:
    """Return the request that is sent in place of this one, with its length and header. Raises ProtocolError."""
    codec = find_message_codec(
        read_api_key_and_version(frame) >> 16, read_api_key_and_version(frame) & 0xFFFF
    )
    _, pos = decode_request_header(frame, codec.flexible)
    return with_length(frame[:pos] + codec.encode_request(changed))


def make_error_response(frame: bytes, error: ErrorCode) -> bytes:
    """Return a response with this error in every place that can hold one, to a request of `DECLARED`.

    Raises ProtocolError for bytes that are no request.
    """
    return encode_response_to_request(
        frame,
        find_request_api(frame).error_response(
            decode_coordinator_request(frame), error, read_api_key_and_version(frame) & 0xFFFF
        ),
    )


def decode_broker_request(frame: bytes) -> Any:
    """Decode a request that any broker may get. Raises ProtocolError."""
    codec = find_message_codec(
        read_api_key_and_version(frame) >> 16, read_api_key_and_version(frame) & 0xFFFF
    )
    _, pos = decode_request_header(frame, codec.flexible)
    return codec.decode_request(frame, pos)


def make_response_with_body(frame: bytes, body: bytes) -> bytes:
    """Return the response with this body to a request that any broker may get. Raises ProtocolError."""
    api_key = read_api_key_and_version(frame) >> 16
    flexible = find_message_codec(api_key, read_api_key_and_version(frame) & 0xFFFF).flexible
    header, _ = decode_request_header(frame, flexible)
    return encode_response(header.correlation_id, body, has_flexible_response_header(api_key, flexible))


def make_empty_response(frame: bytes) -> bytes:
    """Return a response without items and without an error. Raises ProtocolError."""
    return make_response_with_body(
        frame,
        _empty_body(ApiKey(read_api_key_and_version(frame) >> 16), read_api_key_and_version(frame) & 0xFFFF),
    )


@cache
def _empty_body(api_key: ApiKey, version: int) -> bytes:
    make: Any = find_request_and_response_classes(api_key)[1]
    if api_key is ApiKey.DESCRIBE_LOG_DIRS:
        directory = make.DescribeLogDirsResult(version=version, error_code=0, log_dir=NO_DIRECTORY, topics=[])
        fields = {"results": [directory]}
    elif api_key is ApiKey.LIST_TRANSACTIONS:
        fields = {"unknown_state_filters": [], "transaction_states": []}
    else:
        fields = {"groups": []}
    return find_message_codec(api_key, version).encode_response(make(version=version, **fields))


def make_empty_configs_response(
    frame: bytes, resources: Sequence[DescribeConfigsRequest.DescribeConfigsResource]
) -> bytes:
    """Return a DescribeConfigs response in which none of these resources has a setting. Raises ProtocolError."""
    version = read_api_key_and_version(frame) & 0xFFFF
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
    return make_response_with_body(
        frame, find_message_codec(ApiKey.DESCRIBE_CONFIGS, version).encode_response(response)
    )


def make_incremental_alter_configs_response(frame: bytes, resources: Sequence[Any]) -> bytes:
    """Return the response to an IncrementalAlterConfigs of these nodes of ours. Raises ProtocolError.

    Removing settings succeeds at once, since none is set: kafka-reassign-partitions does so at every node when it ends
    a throttle, and stops at the first node that refuses. Setting one is an INVALID_REQUEST.
    """
    version = read_api_key_and_version(frame) & 0xFFFF
    kind: Any = find_request_and_response_classes(ApiKey.INCREMENTAL_ALTER_CONFIGS)[1]
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
    return make_response_with_body(
        frame, find_message_codec(ApiKey.INCREMENTAL_ALTER_CONFIGS, version).encode_response(response)
    )


def make_unsupported_api_versions_response(frame: bytes) -> bytes:
    """Return the response, in version 0, to an ApiVersions that is newer than ours (KIP-511). Raises ProtocolError."""
    header, _ = decode_request_header(frame, False)
    make = api_versions.API.schema.response
    low, high = api_versions.API.versions
    offer = make.ApiVersion(version=0, api_key=ApiKey.API_VERSIONS, min_version=low, max_version=high)
    response = make(version=0, error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[offer])
    body = find_message_codec(ApiKey.API_VERSIONS, 0).encode_response(response)
    return encode_response(header.correlation_id, body, False)
