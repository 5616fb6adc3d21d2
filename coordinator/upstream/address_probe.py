# SPDX-License-Identifier: Apache-2.0
"""Probes an address without a login, to find out whether a broker responds at it, and if not, what does.

The first eight bytes of a response show that: a broker of every version responds to ApiVersions v0, and does so before
authentication. aiokafka's connection only knows that it was closed, or that nothing came.
"""

import asyncio
import ssl
import struct
from typing import Final

from coordinator.config import Address
from coordinator.upstream.errors import (
    SECURITY,
    Unreachable,
    UpstreamError,
    UpstreamNotKafka,
    UpstreamTimeout,
)
from protocol.apis import ApiKey
from protocol.headers import RequestHeader, encode_request_header

_CORRELATION_ID: Final = 0x67726B70
_TLS_ALERT: Final = b"\x15\x03"
_RESPONSE_BYTES_MAX: Final = 1 << 20


async def diagnose_address(
    address: Address, context: ssl.SSLContext | None, timeout_ms: int, reason: str
) -> UpstreamError:
    """Probe an address and return the error to report; `reason` is why the first attempt to connect failed."""
    return await probe_address_error(address, context, timeout_ms) or Unreachable(address, reason)


async def probe_address_error(
    address: Address, context: ssl.SSLContext | None, timeout_ms: int
) -> UpstreamError | None:
    """Return why no broker responds at an address; None if one does."""
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            head = await _first_bytes(address, context)
    except TimeoutError:
        return UpstreamTimeout(address, timeout_ms)
    except OSError as error:
        return Unreachable(address, error.strerror or str(error))
    if not head:
        return UpstreamNotKafka(address, "closes the connection at once: does it want TLS?", SECURITY)
    if head.startswith(_TLS_ALERT):
        return UpstreamNotKafka(address, "speaks TLS", SECURITY)
    if _is_kafka(head):
        return None
    return UpstreamNotKafka(address, f"does not speak Kafka's protocol: it answers {head!r}")


async def _first_bytes(address: Address, context: ssl.SSLContext | None) -> bytes:
    reader, writer = await asyncio.open_connection(address.host, address.port, ssl=context)
    try:
        frame = encode_request_header(
            RequestHeader(ApiKey.API_VERSIONS, 0, _CORRELATION_ID, None), flexible=False
        )
        writer.write(struct.pack(">i", len(frame)) + frame)
        return await reader.readexactly(8)
    except asyncio.IncompleteReadError as ended:
        return ended.partial
    except ConnectionError:
        return b""
    finally:
        writer.close()


def _is_kafka(head: bytes) -> bool:
    if len(head) < 8:
        return False
    length: int
    correlation_id: int
    length, correlation_id = struct.unpack(">ii", head)
    return correlation_id == _CORRELATION_ID and 4 <= length <= _RESPONSE_BYTES_MAX
