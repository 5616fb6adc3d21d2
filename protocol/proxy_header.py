# SPDX-License-Identifier: Apache-2.0
"""The PROXY protocol, version 2 (HAProxy's proxy-protocol.txt, section 2.2), which names a connection's real client.

A gateway writes one header before the frames of a connection that it opens for a client. Only TCP over IPv4 and IPv6 is
written; headers of other families are read without their addresses. `PRINCIPAL` is in the range that the specification
leaves to applications.
"""

import ipaddress
from struct import Struct
from typing import Final, NamedTuple

from protocol.errors import FrameTooLarge, InvalidLength, ProtocolError, Truncated
from protocol.frozen_struct import FrozenStruct

SIGNATURE: Final = b"\r\n\r\n\0\r\nQUIT\n"
HEAD_BYTES: Final = 16
REST_BYTES_MAX: Final = 8 * 1024
"""The limit of addresses and values after the head: 65,535 in the specification; ours have some dozens."""

PRINCIPAL: Final = 0xE0
"""The type of the value that holds the principal of the client, as UTF-8."""

_HEAD: Final = Struct(">12sBBH")
_PORTS: Final = Struct(">HH")
_VALUE: Final = Struct(">BH")
_LOCAL: Final = 0x20
_PROXY: Final = 0x21
_UNSPECIFIED: Final = 0x00
_ADDRESS_BYTES: Final = {0x11: 4, 0x21: 16}
"""The bytes of one address by family and transport: TCP over IPv4 and over IPv6."""
_OTHER_BYTES: Final = {_UNSPECIFIED: 0, 0x12: 12, 0x22: 36, 0x31: 216, 0x32: 216}
"""The bytes of all addresses of the families that are skipped: none, UDP, and Unix sockets."""


class Endpoint(NamedTuple):
    """An address in the notation of IPv4 or IPv6, and a port."""

    host: str
    port: int


class Tlv(NamedTuple):
    """A further value of a header, with its type, which is a byte."""

    kind: int
    content: bytes


class ProxyHeader(FrozenStruct, frozen=True):
    """The source and destination of a connection; both None if the proxy has opened it for itself."""

    source: Endpoint | None = None
    destination: Endpoint | None = None
    values: tuple[Tlv, ...] = ()


def encode_proxy_header(header: ProxyHeader) -> bytes:
    """Return the header's bytes.

    Raises ValueError for a host that is no address, and InvalidLength if its values exceed REST_BYTES_MAX.
    """
    family, rest = _addresses(header.source, header.destination)
    for value in header.values:
        if len(value.content) > REST_BYTES_MAX:
            raise InvalidLength(f"a value of {len(value.content)} bytes in a PROXY header")
        rest += _VALUE.pack(value.kind, len(value.content)) + value.content
    if len(rest) > REST_BYTES_MAX:
        raise InvalidLength(f"a PROXY header of {len(rest)} bytes")
    command = _PROXY if header.source is not None else _LOCAL
    return _HEAD.pack(SIGNATURE, command, family, len(rest)) + rest


def decode_proxy_header(data: bytes) -> tuple[ProxyHeader, int] | None:
    """Return the header at the start of `data` and the position after it; None if more bytes are needed.

    Raises ProtocolError as soon as the bytes cannot be a header: another beginning, another version, a length beyond
    REST_BYTES_MAX (FrameTooLarge), addresses or values that do not fit into the length (Truncated).
    """
    if not SIGNATURE.startswith(data[: len(SIGNATURE)]):
        raise ProtocolError("no PROXY header, version 2")
    if len(data) < HEAD_BYTES:
        return None
    _, command, family, size = _HEAD.unpack_from(data)
    if command not in (_LOCAL, _PROXY):
        raise ProtocolError(f"a PROXY header with version and command {command:#x}")
    if size > REST_BYTES_MAX:
        raise FrameTooLarge(f"a PROXY header of {size} bytes; the limit is {REST_BYTES_MAX}")
    end = HEAD_BYTES + size
    if len(data) < end:
        return None
    rest = bytes(data[HEAD_BYTES:end])
    if command == _LOCAL:  # its addresses are to be ignored
        return ProxyHeader(values=_read_values(rest, _skip_addresses(family, rest))), end
    source, destination, pos = _read_addresses(family, rest)
    return ProxyHeader(source=source, destination=destination, values=_read_values(rest, pos)), end


def _addresses(source: Endpoint | None, destination: Endpoint | None) -> tuple[int, bytes]:
    """Return the family and the bytes of two addresses; both become IPv6 if their families differ."""
    if source is None:
        return _UNSPECIFIED, b""
    hosts = [ipaddress.ip_address(end.host) for end in (source, destination or source)]
    ports = _PORTS.pack(source.port, (destination or source).port)
    if all(host.version == 4 for host in hosts):
        return 0x11, b"".join(host.packed for host in hosts) + ports
    return 0x21, b"".join(_as_ipv6(host) for host in hosts) + ports


def _as_ipv6(host: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bytes:
    return host.packed if host.version == 6 else bytes(10) + b"\xff\xff" + host.packed


def _read_addresses(family: int, rest: bytes) -> tuple[Endpoint | None, Endpoint | None, int]:
    size = _ADDRESS_BYTES.get(family)
    if size is None:
        return None, None, _skip_addresses(family, rest)
    end = 2 * size + _PORTS.size
    if len(rest) < end:
        raise Truncated(f"the addresses of a PROXY header in {len(rest)} bytes")
    hosts = (str(ipaddress.ip_address(rest[pos : pos + size])) for pos in (0, size))
    ports = _PORTS.unpack_from(rest, 2 * size)
    source, destination = (Endpoint(host, port) for host, port in zip(hosts, ports, strict=True))
    return source, destination, end


def _skip_addresses(family: int, rest: bytes) -> int:
    """Return the position of the values; after addresses of an unknown family none can be found."""
    size = _ADDRESS_BYTES.get(family)
    end = _OTHER_BYTES.get(family, len(rest)) if size is None else 2 * size + _PORTS.size
    return min(end, len(rest))


def _read_values(rest: bytes, pos: int) -> tuple[Tlv, ...]:
    values = []
    while pos < len(rest):
        if len(rest) - pos < _VALUE.size:
            raise Truncated("a value of a PROXY header")
        kind, size = _VALUE.unpack_from(rest, pos)
        pos += _VALUE.size
        if len(rest) - pos < size:
            raise Truncated(f"a value of {size} bytes in a PROXY header")
        values.append(Tlv(kind, rest[pos : pos + size]))
        pos += size
    return tuple(values)
