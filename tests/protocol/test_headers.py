# SPDX-License-Identifier: Apache-2.0
"""Request headers as Kafka parses them, response headers as clients expect them."""

import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.api_header import RequestHeader as TheirRequestHeader

from protocol.apis import ApiKey
from protocol.errors import InvalidLength, ProtocolError, Truncated
from protocol.headers import (
    RequestHeader,
    decode_request_header,
    encode_request_header,
    encode_response,
    has_flexible_response_header,
    pack_api_key_and_version,
    read_api_key_and_version,
    unsupported_version_error,
)
from tests.support.apis import FIRST_FLEXIBLE, SUPPORTED

SERVED = [(api, version) for api, (low, high) in SUPPORTED.items() for version in range(low, high + 1)]

client_ids = st.none() | st.text(st.characters(codec="utf-8"), max_size=40)
correlation_ids = st.integers(-(1 << 31), (1 << 31) - 1)


def is_flexible(api: ApiKey, version: int) -> bool:
    return version >= FIRST_FLEXIBLE[api]


def header_bytes(api_key: int, version: int, *, tail: bytes = b"", client_id: bytes = b"\0\2ab") -> bytes:
    return struct.pack(">hhi", api_key, version, 7) + client_id + tail


@given(st.sampled_from(SERVED), correlation_ids, client_ids, st.binary(max_size=9))
def test_headers_of_all_served_versions_agree_with_kafka_python(
    served: tuple[ApiKey, int], correlation_id: int, client_id: str | None, body: bytes
) -> None:
    api, version = served
    header = RequestHeader(int(api), version, correlation_id, client_id)
    flexible = is_flexible(api, version)
    theirs = TheirRequestHeader(
        request_api_key=int(api),
        request_api_version=version,
        correlation_id=correlation_id,
        client_id=client_id,
    )

    encoded = encode_request_header(header, flexible=flexible)

    assert encoded == bytes(theirs.encode(flexible=flexible))
    assert read_api_key_and_version(encoded + body) == pack_api_key_and_version(api, version)
    assert decode_request_header(encoded + body, flexible) == (header, len(encoded))


@pytest.mark.parametrize(("api", "version"), SERVED, ids=str)
def test_a_truncated_header_is_refused_at_every_byte(api: ApiKey, version: int) -> None:
    flexible = is_flexible(api, version)
    whole = header_bytes(api, version, tail=b"\1\5\2xy" if flexible else b"")
    decode_request_header(whole, flexible)

    for end in range(len(whole)):
        with pytest.raises(Truncated):
            decode_request_header(whole[:end], flexible)
    for end in range(4):
        with pytest.raises(Truncated):
            read_api_key_and_version(whole[:end])


def test_tagged_fields_of_a_flexible_header_are_skipped() -> None:
    frame = header_bytes(ApiKey.HEARTBEAT, 4, tail=b"\2\0\3abc\x05\0" + b"body")

    header, pos = decode_request_header(frame, True)

    assert header == RequestHeader(12, 4, 7, "ab")
    assert frame[pos:] == b"body"


def test_a_client_id_that_is_not_utf_8_has_replacement_characters() -> None:
    header, _ = decode_request_header(header_bytes(ApiKey.HEARTBEAT, 0, client_id=b"\0\3a\xff\xfe"), False)

    assert header.client_id == "a\ufffd\ufffd"


def test_a_client_id_of_negative_length_is_refused() -> None:
    with pytest.raises(InvalidLength):
        decode_request_header(header_bytes(ApiKey.HEARTBEAT, 0, client_id=b"\xff\xfe"), False)


@pytest.mark.parametrize(
    ("api_key", "version"),
    [
        (ApiKey.PRODUCE, 2),
        (-1, 0),
        (9999, 0),
        (ApiKey.HEARTBEAT, -1),
        (ApiKey.HEARTBEAT, 32_767),
        (-32_768, 5),
    ],
)
def test_the_refusal_of_what_is_not_offered_names_the_api_and_the_version(api_key: int, version: int) -> None:
    frame = header_bytes(api_key, version)

    assert (
        str(unsupported_version_error(frame)) == f"version {version} of API key {api_key:d} is not supported"
    )
    assert read_api_key_and_version(frame) == pack_api_key_and_version(api_key, version)
    with pytest.raises(Truncated):
        unsupported_version_error(frame[:-1])


@pytest.mark.parametrize("api", SUPPORTED, ids=lambda api: api.name)
def test_response_headers_are_flexible_with_their_bodies_but_for_those_of_api_versions(api: ApiKey) -> None:
    assert has_flexible_response_header(api, True) == (api is not ApiKey.API_VERSIONS)
    assert not has_flexible_response_header(api, False)


@given(st.binary(max_size=60))
def test_garbage_raises_protocol_errors_only(garbage: bytes) -> None:
    for flexible in (False, True):
        for start in (b"", struct.pack(">hh", 12, 4), struct.pack(">hh", 18, 99)):
            with suppress(ProtocolError):
                read_api_key_and_version(start + garbage)
            with suppress(ProtocolError):
                decode_request_header(start + garbage, flexible)


def test_an_endless_varint_in_a_header_is_refused() -> None:
    with pytest.raises(InvalidLength):
        decode_request_header(header_bytes(ApiKey.HEARTBEAT, 4, tail=b"\xff" * 1_000_000), True)


@given(correlation_ids, st.binary(max_size=40))
def test_a_response_is_a_frame_with_the_correlation_id(correlation_id: int, body: bytes) -> None:
    classic = struct.pack(">ii", 4 + len(body), correlation_id) + body
    flexible = struct.pack(">iib", 5 + len(body), correlation_id, 0) + body

    assert encode_response(correlation_id, body, flexible=False) == classic
    assert encode_response(correlation_id, body, flexible=True) == flexible
