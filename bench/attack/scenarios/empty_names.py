# SPDX-License-Identifier: Apache-2.0
"""8 MB of empty names for FindCoordinator, which hold no group that anybody has."""

from bench.attack.frames import Size, raw
from protocol.apis import ApiKey
from protocol.wire import pack_uvarint


def frames(size: Size) -> list[bytes]:
    """One request."""
    count = 8_000_000
    return [raw(ApiKey.FIND_COORDINATOR, 4, b"\\0" + pack_uvarint(count + 1) + b"\\1" * count + b"\\0")]
