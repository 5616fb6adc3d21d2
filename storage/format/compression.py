# SPDX-License-Identifier: Apache-2.0
"""The compression of a record batch: gzip, snappy (also as snappy-java frames it), lz4, zstd."""

from collections.abc import Callable
from struct import Struct
from typing import Final

_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + Struct(">ii").pack(1, 1)
_XERIAL_HEADER_BYTES: Final = len(_XERIAL_HEADER)
_INT: Final = Struct(">i")
_LITTLE_INT: Final = Struct("<I")
_LZ4_HEADER: Final = bytes.fromhex("04224d18 60 40 82")
"""Magic, flags (version 1, independent blocks, no checksums), blocks of at most 64 KiB, and their checksum."""
_LZ4_BLOCK_BYTES: Final = 65_536
_LZ4_STORED: Final = 1 << 31

DECOMPRESSED_BYTES_MAX: Final = 256 << 20
"""The limit of a batch's decompressed records; a batch with more was made to fill the memory, and is not read."""
_SPACE_BYTES_MIN: Final = 1 << 16
_TOO_LITTLE: Final = "whole buffer"
"""A part of Rust's io::Error message for a buffer that is too small."""

NAMES: Final = ("none", "gzip", "snappy", "lz4", "zstd")
"""The codecs' names by the number in a batch's attributes, as in Kafka's `CompressionType`."""


def compress(codec: int, data: bytes) -> bytes:
    """Compress `data` as a batch with `codec` (1 to 4) holds it; snappy as snappy-java frames it."""
    import cramjam

    match codec:
        case 1:
            return bytes(cramjam.gzip.compress(data))
        case 2:
            block = bytes(cramjam.snappy.compress_raw(data))
            return _XERIAL_HEADER + _INT.pack(len(block)) + block
        case 3:
            return _lz4_frame(data)
        case 4:
            return bytes(cramjam.zstd.compress(data))
    raise ValueError(f"compression {codec} is not known")


def decompress(codec: int, data: bytes, bytes_max: int = DECOMPRESSED_BYTES_MAX) -> bytes:
    """Decompress `data`, which was compressed with `codec`.

    Raises ValueError if that fails, or if the result has more than `bytes_max` bytes.
    """
    # Imported late: a node whose log holds no compressed batches never needs it.
    import cramjam

    try:
        if codec == 1:
            return _bounded(cramjam.gzip.decompress_into, data, bytes_max)
        if codec == 2:
            return _snappy(data, bytes_max)
        if codec == 3:
            return _bounded(cramjam.lz4.decompress_into, data, bytes_max)
        if codec == 4:
            return _bounded(cramjam.zstd.decompress_into, data, bytes_max)
    except cramjam.DecompressionError as error:
        raise ValueError(f"cannot decompress {NAMES[codec]}: {error}") from error
    raise ValueError(f"compression {codec} is not known")


def _bounded(decompress_into: Callable[[bytes, bytearray], int], data: bytes, bytes_max: int) -> bytes:
    """Decompress with ever larger buffers, because the result can be a thousand times as large as `data`."""
    import cramjam

    space = max(8 * len(data), _SPACE_BYTES_MIN)
    while space < bytes_max:
        room = bytearray(space)
        try:
            return bytes(memoryview(room)[: decompress_into(data, room)])
        except cramjam.DecompressionError as error:
            if _TOO_LITTLE not in str(error):
                raise
            space *= 8
    room = bytearray(bytes_max)
    return bytes(memoryview(room)[: decompress_into(data, room)])


def _lz4_frame(data: bytes) -> bytes:
    """Encode an lz4 frame of independent blocks: Kafka reads no others, and cramjam writes dependent ones."""
    import cramjam

    parts = [_LZ4_HEADER]
    for start in range(0, len(data), _LZ4_BLOCK_BYTES):
        block = data[start : start + _LZ4_BLOCK_BYTES]
        small = bytes(cramjam.lz4.compress_block(block, store_size=False))
        if len(small) < len(block):
            parts += (_LITTLE_INT.pack(len(small)), small)
        else:
            parts += (_LITTLE_INT.pack(len(block) | _LZ4_STORED), block)
    parts.append(_LITTLE_INT.pack(0))
    return b"".join(parts)


def _snappy(data: bytes, bytes_max: int) -> bytes:
    if not data.startswith(_XERIAL_MAGIC):
        return _raw_snappy(data, bytes_max)
    # snappy-java's stream: magic, two version numbers, then blocks of length and raw snappy.
    blocks: list[bytes] = []
    total = 0
    pos = _XERIAL_HEADER_BYTES
    while pos < len(data):
        if pos + 4 > len(data):
            raise ValueError(f"snappy block header is cut short at byte {pos}")
        (size,) = _INT.unpack_from(data, pos)
        pos += 4
        if not 0 <= size <= len(data) - pos:
            raise ValueError(f"snappy block of {size} bytes at byte {pos}, {len(data) - pos} are left")
        blocks.append(_raw_snappy(data[pos : pos + size], bytes_max - total))
        total += len(blocks[-1])
        pos += size
    return b"".join(blocks)


def _raw_snappy(data: bytes, bytes_max: int) -> bytes:
    """Decompress one raw block, which begins with its decompressed size."""
    import cramjam

    size = cramjam.snappy.decompress_raw_len(data)
    if size > bytes_max:
        raise ValueError(f"snappy of {size} bytes, and {bytes_max} more are read at most")
    return bytes(cramjam.snappy.decompress_raw(data))
