# SPDX-License-Identifier: Apache-2.0
"""What is particular to the messages that are kafka-python's."""

import struct

import pytest

from protocol.apis import ApiKey
from protocol.errors import ErrorCode, InvalidLength, Truncated
from protocol.messages import (
    ApiVersionsResponse,
    FetchResponse,
    FindCoordinatorRequest,
    MetadataRequest,
    MetadataResponse,
    decode_request,
    decode_response,
    encode_request,
    encode_response_body,
)


def test_the_answer_to_an_unsupported_version_of_api_versions_reads_as_version_0() -> None:
    answer = ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION,
        api_keys=[ApiVersionsResponse.ApiVersion(api_key=18, min_version=0, max_version=4)],
    )
    body = encode_response_body(ApiKey.API_VERSIONS, 0, answer)

    read = decode_response(ApiKey.API_VERSIONS, 4, body)

    assert read.version == 0
    assert [(one.api_key, one.min_version, one.max_version) for one in read.api_keys] == [(18, 0, 4)]


def test_any_other_error_of_api_versions_reads_as_the_version_asked_for() -> None:
    body = encode_response_body(
        ApiKey.API_VERSIONS, 4, ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST, api_keys=[])
    )

    assert decode_response(ApiKey.API_VERSIONS, 4, body).version == 4


def test_encoding_gives_bytes_and_takes_only_its_own_message() -> None:
    request = MetadataRequest(topics=[])

    assert type(encode_request(ApiKey.METADATA, 12, request)) is bytes
    with pytest.raises(TypeError, match="MetadataRequest is not a MetadataResponse"):
        encode_response_body(ApiKey.METADATA, 12, request)


def test_one_message_can_be_written_in_several_versions() -> None:
    request = FindCoordinatorRequest(key="g", key_type=0, coordinator_keys=["g"])

    assert (
        decode_request(ApiKey.FIND_COORDINATOR, 0, encode_request(ApiKey.FIND_COORDINATOR, 0, request)).key
        == "g"
    )
    read = decode_request(ApiKey.FIND_COORDINATOR, 6, encode_request(ApiKey.FIND_COORDINATOR, 6, request))
    assert read.coordinator_keys == ["g"]


def test_known_tagged_fields_are_read() -> None:
    response = FetchResponse(
        session_id=1,
        responses=[],
        node_endpoints=[FetchResponse.NodeEndpoint(node_id=5, host="h", port=9, rack=None)],
    )

    read = decode_response(ApiKey.FETCH, 16, encode_response_body(ApiKey.FETCH, 16, response))

    assert [(node.node_id, node.host, node.port) for node in read.node_endpoints] == [(5, "h", 9)]


def test_authorized_operations_that_were_not_asked_for_are_none() -> None:
    response = MetadataResponse(brokers=[], cluster_id=None, controller_id=1, topics=[])

    body = encode_response_body(ApiKey.METADATA, 8, response)

    assert body.endswith(struct.pack(">i", -(1 << 31)))
    assert decode_response(ApiKey.METADATA, 8, body).authorized_operations is None


def test_a_uuid_beyond_the_end_is_refused() -> None:
    request = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="t")])
    body = encode_request(ApiKey.METADATA, 12, request)

    with pytest.raises(Truncated):
        decode_request(ApiKey.METADATA, 12, body[:12])


def test_a_count_beyond_the_frame_is_refused_before_any_item_is_read() -> None:
    body = struct.pack(">i", 1 << 30) + bytes(1000)

    with pytest.raises(InvalidLength, match="1073741824 items in 1000 bytes"):
        decode_request(ApiKey.METADATA, 0, body)
