# SPDX-License-Identifier: Apache-2.0
"""Requests of our own, and the answers to them, whatever is in the headers."""

import pytest

from protocol.apis import ApiKey
from protocol.client_frames import LENGTH_BYTES, decode_answer, encode_request
from protocol.errors import ProtocolError
from protocol.framing import FrameReader
from protocol.headers import RequestHeader, decode_request_header, encode_response
from protocol.hot.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.kafka_python_messages import ApiVersionsResponse
from protocol.message_codecs import find_message_codec
from protocol.newtypes import GroupId, MemberId

REQUEST = HeartbeatRequest(group_id=GroupId("g"), generation_id=3, member_id=MemberId("m"))


@pytest.mark.parametrize("version", [0, 4])
def test_a_request_is_a_frame_with_its_header_before_it(version: int) -> None:
    codec = find_message_codec(ApiKey.HEARTBEAT, version)
    sent = encode_request(codec, RequestHeader(ApiKey.HEARTBEAT, version, 7, "asker"), REQUEST)
    (frame,) = FrameReader(1 << 20).feed(sent)
    header, pos = decode_request_header(frame, codec.flexible)
    assert (header.api_key, header.api_version, header.correlation_id) == (ApiKey.HEARTBEAT, version, 7)
    assert codec.decode_request(frame, pos) == REQUEST


@pytest.mark.parametrize("version", [0, 4])
def test_the_body_of_an_answer_is_behind_its_header(version: int) -> None:
    codec = find_message_codec(ApiKey.HEARTBEAT, version)
    response = HeartbeatResponse(error_code=27)
    sent = encode_response(7, codec.encode_response(response), codec.flexible)
    assert decode_answer(codec, ApiKey.HEARTBEAT, sent, LENGTH_BYTES) == response
    assert decode_answer(codec, ApiKey.HEARTBEAT, sent[LENGTH_BYTES:]) == response


def test_tags_in_the_header_of_an_answer_are_passed_over() -> None:
    codec = find_message_codec(ApiKey.HEARTBEAT, 4)
    response = HeartbeatResponse(error_code=27)
    tagged = b"\0\0\0\7" + b"\1\5\2ab" + codec.encode_response(response)
    assert decode_answer(codec, ApiKey.HEARTBEAT, tagged) == response


def test_answers_to_api_versions_have_no_tags_in_their_header() -> None:
    codec = find_message_codec(ApiKey.API_VERSIONS, 3)
    response = ApiVersionsResponse(version=3, error_code=0, api_keys=[], throttle_time_ms=5)
    sent = encode_response(7, codec.encode_response(response), False)
    assert decode_answer(codec, ApiKey.API_VERSIONS, sent, LENGTH_BYTES).throttle_time_ms == 5


@pytest.mark.parametrize("size", range(4, 10))
def test_an_answer_that_is_cut_off_is_refused(size: int) -> None:
    codec = find_message_codec(ApiKey.HEARTBEAT, 4)
    sent = encode_response(7, codec.encode_response(HeartbeatResponse(error_code=0)), True)[LENGTH_BYTES:]
    with pytest.raises(ProtocolError):
        decode_answer(codec, ApiKey.HEARTBEAT, sent[:size])
