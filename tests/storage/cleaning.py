# SPDX-License-Identifier: Apache-2.0
"""Histories of a log with values, tombstones and transactions, and what a reader makes of them."""

import enum
import random
from collections.abc import Iterable, Mapping
from struct import Struct

from protocol.newtypes import Offset, Partition
from storage.format.batch import Batch, iter_batches, iter_records
from storage.format.compression import compress
from storage.format.markers import marker_type
from storage.format.varints import encode_signed_varint
from storage.journal.journal import Entry
from storage.log_manager import LogManager
from tests.storage.headers import with_header

NOW = 1_700_000_000_000
RETENTION = 60_000
_TWO_SHORTS = Struct(">hh")
_MARKER = Struct(">hi")

Pairs = Iterable[tuple[bytes | None, bytes | None]]


class MarkerKind(enum.IntEnum):
    """How a transaction ends, by the number in its marker."""

    ABORT = 0
    COMMIT = 1


def build(
    base_offset: int,
    pairs: Pairs,
    *,
    attributes: int = 0,
    timestamp: int = NOW,
    producer_id: int = -1,
    epoch: int = 0,
) -> bytes:
    """A batch of any keys and values."""
    parts = []
    count = 0
    for key, value in pairs:
        record = bytes(2) + encode_signed_varint(count)
        for field in (key, value):
            record += encode_signed_varint(-1) if field is None else encode_signed_varint(len(field)) + field
        record += b"\0"
        parts.append(encode_signed_varint(len(record)) + record)
        count += 1
    body = b"".join(parts)
    if attributes & 7:
        body = compress(attributes & 7, body)
    producer_epoch = 0 if producer_id >= 0 else -1
    return with_header(
        body,
        count,
        base_offset=base_offset,
        attributes=attributes,
        epoch=epoch,
        timestamp=timestamp,
        max_timestamp=timestamp,
        producer=(producer_id, producer_epoch, -1),
    )


class History:
    """Appends to one partition, and keeps what a reader must find in the end."""

    def __init__(self, manager: LogManager, partition: int) -> None:
        self.manager = manager
        self.partition = partition
        self.state: dict[bytes, bytes] = {}
        self.compression = 0
        self.open: dict[int, dict[bytes, bytes | None]] = {}

    def _append(self, pairs: Pairs, **how: int) -> None:
        offset = self.manager.end_offset(Partition(self.partition))
        self.manager.append(
            [Entry(Partition(self.partition), offset, build(offset, pairs, **how))], sync=False
        )

    def raw(self, key: bytes, value: bytes | None) -> None:
        """One record, of whatever kind."""
        self._append([(key, value)], attributes=self.compression)
        self._take({key: value})

    def value(self, key: str, value: str) -> None:
        """One record with a value."""
        self.raw(key.encode(), value.encode())

    def tombstone(self, key: str) -> None:
        """One record without."""
        self.raw(key.encode(), None)

    def values(self, pairs: Mapping[str, str | None]) -> None:
        """Records of one batch; None for a tombstone."""
        encoded = {key.encode(): None if value is None else value.encode() for key, value in pairs.items()}
        self._append(encoded.items(), attributes=self.compression)
        self._take(encoded)

    def transaction(self, producer_id: int, pairs: Mapping[str, str | None]) -> None:
        """Records of one batch that wait for a marker."""
        encoded = {key.encode(): None if value is None else value.encode() for key, value in pairs.items()}
        self._append(encoded.items(), attributes=0x10 | self.compression, producer_id=producer_id)
        self.open.setdefault(producer_id, {}).update(encoded)

    def end(self, producer_id: int, kind: MarkerKind) -> None:
        """The marker that ends a transaction; a commit's records count from here on."""
        pair = (_TWO_SHORTS.pack(0, kind), _MARKER.pack(0, 0))
        self._append([pair], attributes=0x30, producer_id=producer_id)
        held = self.open.pop(producer_id, {})
        if kind is MarkerKind.COMMIT:
            self._take(held)

    def _take(self, pairs: Mapping[bytes, bytes | None]) -> None:
        for key, value in pairs.items():
            if value is None:
                self.state.pop(key, None)
            else:
                self.state[key] = value

    def random(self, rng: random.Random, steps: int, *, transactions: bool) -> None:
        """Some of everything. Keys in transactions are their producer's own, as a group has one coordinator."""
        for step in range(steps):
            choice = rng.random()
            key = f"k{rng.randint(0, 12)}"
            if choice < 0.5:
                self.value(key, f"{step} {rng.randint(0, 99)}")
            elif choice < 0.6:
                self.tombstone(key)
            elif choice < 0.8 or not transactions:
                some = rng.sample(range(13), rng.randint(1, 5))
                self.values({f"k{n}": None if rng.random() < 0.2 else f"{step}.{n}" for n in some})
            elif choice < 0.92 or not self.open:
                producer = rng.randint(1, 3)
                self.transaction(producer, {f"p{producer}.{rng.randint(0, 4)}": str(step)})
            else:
                self.end(rng.choice(sorted(self.open)), rng.choice(list(MarkerKind)))
        for producer in sorted(self.open):
            self.end(producer, MarkerKind.COMMIT)


def content(manager: LogManager, partition: int) -> list[Batch]:
    """All batches, as they are read."""
    found: list[Batch] = []
    offset, end = 0, manager.end_offset(Partition(partition))
    while offset < end:
        data, following = manager.read(Partition(partition), Offset(offset), 1_500)
        assert following > offset
        offset = following
        found += iter_batches(data, check=True)
    offsets = [place for batch in found for place in (batch.base_offset, batch.last_offset)]
    assert offsets == sorted(offsets)
    return found


def replay(batches: Iterable[Batch]) -> dict[bytes, bytes]:
    """What a reader holds in the end: of each key the newest value, transactions as from their markers."""
    state: dict[bytes, bytes] = {}
    held: dict[int, dict[bytes, bytes | None]] = {}

    def take(pairs: Mapping[bytes, bytes | None]) -> None:
        for key, value in pairs.items():
            if value is None:
                state.pop(key, None)
            else:
                state[key] = value

    for batch in batches:
        if batch.is_control:
            ended = held.pop(batch.producer_id, {}) if batch.count else {}
            if batch.count and marker_type(batch) == MarkerKind.COMMIT:
                take(ended)
            continue
        for _, _, key, value in iter_records(batch):
            assert key is not None
            if batch.is_transactional:
                held.setdefault(batch.producer_id, {})[key] = value
            else:
                take({key: value})
    return state
