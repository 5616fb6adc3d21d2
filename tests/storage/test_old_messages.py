# SPDX-License-Identifier: Apache-2.0
"""Message sets of brokers before 0.11, as kafka-python still builds them."""

import gzip
from contextlib import suppress
from pathlib import Path
from struct import pack
from zlib import crc32

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.legacy_records import LegacyRecordBatchBuilder

from protocol.newtypes import Offset, Partition
from storage.errors import CorruptBatch, IncompleteBatch
from storage.format.batch import iter_batches, iter_records, read_checked_batch, read_unchecked_batch
from storage.format.record_decoder import RecordDecoder
from storage.format.records import encode_record_key, encode_record_value
from storage.journal.journal import Entry
from storage.log_manager import LogManager
from storage.settings import LogSettings
from tests.storage import strategies
from tests.storage.faulty import FaultyFileSystem

NOW = 1_700_000_000_000
RECORDS = strategies.commit(1, 20)
PAIRS = [(encode_record_key(record), encode_record_value(record)) for record in RECORDS]


def message_set(magic: int, codec: int = 0, *, pairs: list[tuple[bytes | None, bytes | None]]) -> bytes:
    """Messages at the offsets from 0 on; with a codec all of them in one wrapper."""
    builder = LegacyRecordBatchBuilder(magic, codec, 1 << 22)
    for offset, (key, value) in enumerate(pairs):
        builder.append(offset, NOW + offset, key, value)
    return bytes(builder.build())


def wrapper(body: bytes, *, offset: int, attributes: int, magic: int = 1) -> bytes:
    """A message around `body`, at an offset as a broker gives it."""
    rest = pack(">bb", magic, attributes) + (pack(">q", NOW + 77) if magic else b"")
    rest += pack(">ii", -1, len(body)) + body
    return pack(">qiI", offset, len(rest) + 4, crc32(rest)) + rest


nullable = st.none() | st.binary(max_size=50)


@given(st.lists(st.tuples(nullable, nullable), max_size=20), st.sampled_from([0, 1]))
def test_messages_are_read_one_by_one(pairs: list[tuple[bytes | None, bytes | None]], magic: int) -> None:
    batches = list(iter_batches(message_set(magic, pairs=pairs), check=True))
    assert [batch.magic for batch in batches] == [magic] * len(pairs)
    assert [record for batch in batches for record in iter_records(batch)] == [
        (offset, NOW + offset if magic else -1, key, value) for offset, (key, value) in enumerate(pairs)
    ]


@pytest.mark.parametrize("magic", [0, 1])
def test_wrapped_messages_are_read(magic: int) -> None:
    data = message_set(magic, 1, pairs=list(PAIRS))
    (batch,) = iter_batches(data, check=True)
    found = list(iter_records(batch))
    assert [(key, value) for _, _, key, value in found] == PAIRS
    assert RecordDecoder().decode_batch(batch) == RECORDS
    if magic == 0:
        assert [offset for offset, *_ in found] == list(range(20))


@pytest.mark.parametrize(
    ("codec", "compress"),
    [
        (1, gzip.compress),
        (2, lambda data: bytes(cramjam.snappy.compress_raw(data))),
        (3, lambda data: bytes(cramjam.lz4.compress(data))),
    ],
)
def test_a_wrapper_of_magic_1_has_the_offset_of_its_last_message(codec: int, compress: object) -> None:
    assert callable(compress)
    body = compress(message_set(1, pairs=list(PAIRS)))
    batch = read_checked_batch(wrapper(body, offset=119, attributes=codec))
    assert (batch.last_offset, batch.next_offset) == (119, 120)
    assert [(o, t) for o, t, _, _ in iter_records(batch)] == [(100 + n, NOW + n) for n in range(20)]
    appended = read_checked_batch(wrapper(body, offset=119, attributes=codec | 8))
    assert {timestamp for _, timestamp, _, _ in iter_records(appended)} == {NOW + 77}


def test_a_wrapper_with_nothing_or_another_wrapper_in_it_is_damage() -> None:
    for body in (
        gzip.compress(b""),
        gzip.compress(wrapper(gzip.compress(message_set(1, pairs=list(PAIRS))), offset=0, attributes=1)),
        gzip.compress(b"\x00" * 40),
        b"not compressed",
    ):
        with pytest.raises(CorruptBatch):
            list(iter_records(wrapper(body, offset=5, attributes=1)))


@pytest.mark.parametrize("magic", [0, 1])
def test_a_message_cut_anywhere_is_incomplete_and_a_flipped_byte_is_found(magic: int) -> None:
    whole = message_set(magic, pairs=list(PAIRS[:1]))
    for cut in range(len(whole)):
        with pytest.raises(IncompleteBatch):
            read_unchecked_batch(whole[:cut])
    for position in range(8, len(whole)):
        damaged = bytearray(whole)
        damaged[position] ^= 0x44
        with pytest.raises(CorruptBatch):
            read_checked_batch(bytes(damaged))


@given(st.binary(max_size=100), st.sampled_from([0, 1]), st.integers(0, 15))
def test_garbage_is_refused_or_read_but_nothing_else(body: bytes, magic: int, attributes: int) -> None:
    with suppress(CorruptBatch):
        list(iter_records(wrapper(body, offset=1, attributes=attributes, magic=magic)))
    rest = pack(">bb", magic, attributes) + body
    with suppress(CorruptBatch):
        list(iter_records(pack(">qiI", 3, len(rest) + 4, crc32(rest)) + rest))


@pytest.mark.parametrize("magic", [0, 1])
def test_a_log_that_starts_with_old_messages_is_opened_read_and_written(magic: int) -> None:
    root = Path("/data")
    fs = FaultyFileSystem(root)
    directory = root / "__consumer_offsets-0"
    fs.mkdir(directory)
    old = message_set(magic, pairs=list(PAIRS))
    fs.open(directory / f"{0:020d}.log", create=True).pwrite([old, old[:30]], 0)
    manager = LogManager.open(root, LogSettings(journal_step_bytes=8192), fs)
    assert [cut.size_bytes for cut in manager.cuts] == [30]
    assert manager.end_offset(Partition(0)) == 20
    new = strategies.batch(7, 20, 2)
    manager.append([Entry(Partition(0), Offset(20), new)], sync=True)
    manager.close()
    manager = LogManager.open(root, LogSettings(journal_step_bytes=8192), fs)
    assert manager.read(Partition(0), Offset(0), 1 << 20) == (old + new, 22)
    assert manager.read(Partition(0), Offset(19), 1)[0] == old[len(old) // 20 * 19 :]
    loader = RecordDecoder()
    loaded = [
        record for batch in iter_batches(old + new, check=True) for record in loader.decode_batch(batch)
    ]
    assert loaded == RECORDS + strategies.commit(7, 2)
