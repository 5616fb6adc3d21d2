# SPDX-License-Identifier: Apache-2.0
"""Batches v2 field by field, with whatever in them; apart from `encode_batch`, so that it can be compared with this."""

from crc32c import crc32c

from storage.format.batch_format import HEADER

NOW = 1_700_000_000_000


def with_header(
    body: bytes,
    count: int,
    *,
    base_offset: int = 0,
    attributes: int = 0,
    delta: int | None = None,
    epoch: int = 0,
    timestamp: int = NOW,
    max_timestamp: int = NOW,
    producer: tuple[int, int, int] = (-1, -1, -1),
) -> bytes:
    """A batch with a right checksum around some bytes, which are compressed already if the attributes say so.

    `producer` has its id, its epoch and its sequence.
    """
    last = (count - 1 if delta is None else delta) & 0x7FFFFFFF
    times = (timestamp, max_timestamp)
    header = HEADER.pack(base_offset, 49 + len(body), epoch, 2, 0, attributes, last, *times, *producer, count)
    return header[:17] + crc32c(header[21:] + body).to_bytes(4, "big") + header[21:] + body
