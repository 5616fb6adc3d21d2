# SPDX-License-Identifier: Apache-2.0
"""Undoing the compression of a record batch: gzip, snappy (also as snappy-java frames it), lz4, zstd."""

from struct import Struct
from typing import Final

_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES: Final = 16
_INT: Final = Struct(">i")

NAMES: Final = ("none", "gzip", "snappy", "lz4", "zstd")
"""By the number in a batch's attributes, as in Kafka's `CompressionType`."""


def decompress(codec: int, data: bytes) -> bytes:
    """What `data` was before `codec`. Raises ValueError when it cannot be undone."""
    # Imported late: a node that wrote its whole log itself never needs it.
    import cramjam

    try:
        if codec == 1:
            return bytes(cramjam.gzip.decompress(data))
        if codec == 2:
            return _snappy(data)
        if codec == 3:
            return bytes(cramjam.lz4.decompress(data))
        if codec == 4:
            return bytes(cramjam.zstd.decompress(data))
    except cramjam.DecompressionError as error:
        raise ValueError(f"cannot decompress {NAMES[codec]}: {error}") from error
    raise ValueError(f"compression {codec} is not known")


def _snappy(data: bytes) -> bytes:
    import cramjam

    if not data.startswith(_XERIAL_MAGIC):
        return bytes(cramjam.snappy.decompress_raw(data))
    # snappy-java's stream: magic, two version numbers, then blocks of length and raw snappy.
    blocks = []
    pos = _XERIAL_HEADER_BYTES
    while pos < len(data):
        if pos + 4 > len(data):
            raise ValueError(f"snappy block header is cut short at byte {pos}")
        (size,) = _INT.unpack_from(data, pos)
        pos += 4
        if not 0 <= size <= len(data) - pos:
            raise ValueError(f"snappy block of {size} bytes at byte {pos}, {len(data) - pos} are left")
        blocks.append(bytes(cramjam.snappy.decompress_raw(data[pos : pos + size])))
        pos += size
    return b"".join(blocks)
