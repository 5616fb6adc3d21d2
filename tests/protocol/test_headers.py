# SPDX-License-Identifier: Apache-2.0
"""Request headers as Kafka parses them, response headers as clients expect them."""

import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.api_header import RequestHeader as TheirRequestHeader

from protocol.apis import FIRST_FLEXIBLE, SUPPORTED, ApiKey
from protocol.errors import InvalidLength, ProtocolError, Truncated, UnsupportedVersion
from protocol.headers import RequestHeader, decode_request_header, encode_request_header, encode_response

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
    assert decode_request_header(encoded + body) == (header, len(encoded))


@pytest.mark.parametrize(("api", "version"), SERVED, ids=str)
def test_a_truncated_header_is_refused_at_every_byte(api: ApiKey, version: int) -> None:
    whole = header_bytes(api, version, tail=b"\1\5\2xy" if is_flexible(api, version) else b"")
    decode_request_header(whole)

    for end in range(len(whole)):
        with pytest.raises(Truncated):
            decode_request_header(whole[:end])


def test_tagged_fields_of_a_flexible_header_are_skipped() -> None:
    frame = header_bytes(ApiKey.HEARTBEAT, 4, tail=b"\2\0\3abc\x05\0" + b"body")

    header, pos = decode_request_header(frame)

    assert header == RequestHeader(12, 4, 7, "ab")
    assert frame[pos:] == b"body"


def test_a_client_id_that_is_not_utf_8_has_replacement_characters() -> None:
    header, _ = decode_request_header(header_bytes(ApiKey.HEARTBEAT, 0, client_id=b"\0\3a\xff\xfe"))

    assert header.client_id == "a\ufffd\ufffd"


def test_a_client_id_of_negative_length_is_refused() -> None:
    with pytest.raises(InvalidLength):
        decode_request_header(header_bytes(ApiKey.HEARTBEAT, 0, client_id=b"\xff\xfe"))


@pytest.mark.parametrize(
    ("api_key", "version", "tail"),
    [
        (ApiKey.PRODUCE, 2, b""),
        (ApiKey.ADD_PARTITIONS_TO_TXN, 3, b""),
        (-1, 0, b""),
        (9999, 0, b""),
        (ApiKey.HEARTBEAT, 5, b"\0"),
        (ApiKey.HEARTBEAT, -1, b""),
        (ApiKey.OFFSET_COMMIT, 1, b""),
        (ApiKey.OFFSET_DELETE, 1, b""),
    ],
)
def test_what_is_not_served_is_refused_with_its_header(api_key: int, version: int, tail: bytes) -> None:
    with pytest.raises(UnsupportedVersion) as caught:
        decode_request_header(header_bytes(api_key, version, tail=tail))

    assert caught.value.header == RequestHeader(api_key, version, 7, "ab")


@pytest.mark.parametrize("version", [5, 99, 32_767])
def test_api_versions_above_the_range_has_a_flexible_header(version: int) -> None:
    frame = header_bytes(ApiKey.API_VERSIONS, version, tail=b"\0body")

    header, pos = decode_request_header(frame)

    assert header.api_version == version
    assert frame[pos:] == b"body"
    with pytest.raises(Truncated):
        decode_request_header(header_bytes(ApiKey.API_VERSIONS, version))


@pytest.mark.parametrize("version", [-1, -32_768])
def test_api_versions_below_the_range_has_a_classic_header(version: int) -> None:
    frame = header_bytes(ApiKey.API_VERSIONS, version, tail=b"body")

    header, pos = decode_request_header(frame)

    assert header.api_version == version
    assert frame[pos:] == b"body"


@given(st.binary(max_size=60))
def test_garbage_raises_protocol_errors_only(garbage: bytes) -> None:
    with suppress(ProtocolError):
        decode_request_header(garbage)
    for api_key, version in ((12, 4), (18, 99), (12, 0)):
        with suppress(ProtocolError):
            decode_request_header(struct.pack(">hh", api_key, version) + garbage)


def test_an_endless_varint_in_a_header_is_refused() -> None:
    with pytest.raises(InvalidLength):
        decode_request_header(header_bytes(ApiKey.HEARTBEAT, 4, tail=b"\xff" * 1_000_000))


@given(correlation_ids, st.binary(max_size=40))
def test_a_response_is_a_frame_with_the_correlation_id(correlation_id: int, body: bytes) -> None:
    classic = struct.pack(">ii", 4 + len(body), correlation_id) + body
    flexible = struct.pack(">iib", 5 + len(body), correlation_id, 0) + body

    assert encode_response(correlation_id, body, flexible=False) == classic
    assert encode_response(correlation_id, body, flexible=True) == flexible
