# SPDX-License-Identifier: Apache-2.0
"""PROXY protocol headers: what is written is read again, other bytes are refused, and none are waited for in vain."""

import ipaddress
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import FrameTooLarge, InvalidLength, ProtocolError, Truncated
from protocol.proxy_header import (
    HEAD_BYTES,
    PRINCIPAL,
    REST_BYTES_MAX,
    SIGNATURE,
    Endpoint,
    ProxyHeader,
    Tlv,
    decode_proxy_header,
    encode_proxy_header,
)

PORTS = st.integers(0, 65_535)
IPV4 = st.builds(Endpoint, st.ip_addresses(v=4).map(str), PORTS)
IPV6 = st.builds(Endpoint, st.ip_addresses(v=6).map(str), PORTS)
VALUES = st.lists(st.builds(Tlv, st.integers(0, 255), st.binary(max_size=300)), max_size=5).map(tuple)
HEADERS = st.one_of(
    st.builds(ProxyHeader, source=IPV4, destination=IPV4, values=VALUES),
    st.builds(ProxyHeader, source=IPV6, destination=IPV6, values=VALUES),
    st.just(ProxyHeader()),
)

# haproxy 2.6 with `send-proxy-v2`, a connection from 127.0.0.1:56324 to 127.0.0.1:443
OF_HAPROXY = bytes.fromhex("0d0a0d0a000d0a515549540a 21 11 000c 7f000001 7f000001 dc04 01bb".replace(" ", ""))


@given(HEADERS, st.binary(max_size=40))
def test_what_is_written_is_read_again_and_says_where_the_frames_begin(
    header: ProxyHeader, frames: bytes
) -> None:
    data = encode_proxy_header(header)
    assert decode_proxy_header(data + frames) == (header, len(data))


@given(HEADERS)
def test_a_header_that_is_cut_off_anywhere_waits_for_more(header: ProxyHeader) -> None:
    data = encode_proxy_header(header)
    assert all(decode_proxy_header(data[:end]) is None for end in range(len(data)))


@given(st.binary(max_size=300))
def test_no_bytes_behind_the_signature_do_harm(data: bytes) -> None:
    with suppress(ProtocolError):
        decode_proxy_header(SIGNATURE + data)


@given(st.binary(min_size=1, max_size=40).filter(lambda data: not SIGNATURE.startswith(data[:12])))
def test_another_beginning_is_refused_with_its_first_byte_that_differs(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_proxy_header(data)


def test_a_header_as_haproxy_writes_it() -> None:
    header = ProxyHeader(source=Endpoint("127.0.0.1", 56324), destination=Endpoint("127.0.0.1", 443))
    assert decode_proxy_header(OF_HAPROXY) == (header, len(OF_HAPROXY))
    assert encode_proxy_header(header) == OF_HAPROXY


def test_addresses_of_two_families_are_written_as_ipv6() -> None:
    header = ProxyHeader(source=Endpoint("10.0.0.1", 1), destination=Endpoint("::1", 2))
    decoded = decode_proxy_header(encode_proxy_header(header))
    assert decoded is not None
    source = decoded[0].source
    assert source is not None
    assert ipaddress.IPv6Address(source.host).ipv4_mapped == ipaddress.IPv4Address("10.0.0.1")


def test_the_addresses_of_a_local_header_are_ignored_and_its_values_kept() -> None:
    data = bytearray(OF_HAPROXY)
    data[12] = 0x20
    data[15] += 6
    data += bytes([PRINCIPAL, 0, 3]) + b"bob"
    assert decode_proxy_header(bytes(data)) == (ProxyHeader(values=(Tlv(PRINCIPAL, b"bob"),)), len(data))


@pytest.mark.parametrize(
    ("head", "rest", "error"),
    [
        ("1111000c", "", ProtocolError),  # version 1
        ("2211000c", "", ProtocolError),  # a command that there is not
        ("2111ffff", "", FrameTooLarge),
        ("2111000b", "00" * 11, Truncated),  # addresses that do not fit
        ("2111000e", "00" * 14, Truncated),  # half of a value's head
        ("21110010", "00" * 12 + "e0000500", Truncated),  # a value that does not fit
    ],
)
def test_what_is_no_header_is_refused(head: str, rest: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        decode_proxy_header(SIGNATURE + bytes.fromhex(head + rest))


def test_values_beyond_the_bound_are_not_written() -> None:
    for values in ((Tlv(1, bytes(REST_BYTES_MAX + 1)),), (Tlv(1, bytes(REST_BYTES_MAX // 2)),) * 2):
        with pytest.raises(InvalidLength):
            encode_proxy_header(ProxyHeader(values=values))


def test_the_longest_header_that_is_written_is_read() -> None:
    header = ProxyHeader(values=(Tlv(1, bytes(REST_BYTES_MAX - 3)),))
    data = encode_proxy_header(header)
    assert len(data) == HEAD_BYTES + REST_BYTES_MAX
    assert decode_proxy_header(data) == (header, len(data))
