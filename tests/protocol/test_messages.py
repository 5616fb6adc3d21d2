# SPDX-License-Identifier: Apache-2.0
"""What is particular to the messages that are kafka-python's."""

import struct

import pytest

from protocol.apis import ApiKey
from protocol.errors import ErrorCode, InvalidLength, Truncated
from protocol.kafka_python_messages import (
    ApiVersionsResponse,
    FetchResponse,
    FindCoordinatorRequest,
    MetadataRequest,
    MetadataResponse,
)
from protocol.message_codecs import find_message_codec


def test_the_answer_to_an_unsupported_version_of_api_versions_reads_as_version_0() -> None:
    answer = ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION,
        api_keys=[ApiVersionsResponse.ApiVersion(api_key=18, min_version=0, max_version=4)],
    )
    body = find_message_codec(ApiKey.API_VERSIONS, 0).encode_response(answer)

    read = find_message_codec(ApiKey.API_VERSIONS, 4).decode_response(body, 0)

    assert read.version == 0
    assert [(one.api_key, one.min_version, one.max_version) for one in read.api_keys] == [(18, 0, 4)]


def test_any_other_error_of_api_versions_reads_as_the_version_asked_for() -> None:
    body = find_message_codec(ApiKey.API_VERSIONS, 4).encode_response(
        ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST, api_keys=[])
    )

    assert find_message_codec(ApiKey.API_VERSIONS, 4).decode_response(body, 0).version == 4


def test_encoding_gives_bytes_and_takes_only_its_own_message() -> None:
    request = MetadataRequest(topics=[])

    assert type(find_message_codec(ApiKey.METADATA, 12).encode_request(request)) is bytes
    with pytest.raises(TypeError, match="MetadataRequest is not a MetadataResponse"):
        find_message_codec(ApiKey.METADATA, 12).encode_response(request)


def test_one_message_can_be_written_in_several_versions() -> None:
    request = FindCoordinatorRequest(key="g", key_type=0, coordinator_keys=["g"])

    old, new = find_message_codec(ApiKey.FIND_COORDINATOR, 0), find_message_codec(ApiKey.FIND_COORDINATOR, 6)

    assert old.decode_request(old.encode_request(request), 0).key == "g"
    assert new.decode_request(new.encode_request(request), 0).coordinator_keys == ["g"]


def test_known_tagged_fields_are_read() -> None:
    response = FetchResponse(
        session_id=1,
        responses=[],
        node_endpoints=[FetchResponse.NodeEndpoint(node_id=5, host="h", port=9, rack=None)],
    )

    codec = find_message_codec(ApiKey.FETCH, 16)
    read = codec.decode_response(codec.encode_response(response), 0)

    assert [(node.node_id, node.host, node.port) for node in read.node_endpoints] == [(5, "h", 9)]


def test_authorized_operations_that_were_not_asked_for_are_none() -> None:
    response = MetadataResponse(brokers=[], cluster_id=None, controller_id=1, topics=[])

    body = find_message_codec(ApiKey.METADATA, 8).encode_response(response)

    assert body.endswith(struct.pack(">i", -(1 << 31)))
    assert find_message_codec(ApiKey.METADATA, 8).decode_response(body, 0).authorized_operations is None


def test_a_uuid_beyond_the_end_is_refused() -> None:
    request = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="t")])
    body = find_message_codec(ApiKey.METADATA, 12).encode_request(request)

    with pytest.raises(Truncated):
        find_message_codec(ApiKey.METADATA, 12).decode_request(body[:12], 0)


def test_a_count_beyond_the_frame_is_refused_before_any_item_is_read() -> None:
    body = struct.pack(">i", 1 << 30) + bytes(1000)

    with pytest.raises(InvalidLength, match="1073741824 items in 1000 bytes"):
        find_message_codec(ApiKey.METADATA, 0).decode_request(body, 0)
