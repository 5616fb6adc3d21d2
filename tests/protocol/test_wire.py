# SPDX-License-Identifier: Apache-2.0
"""Varints and the other parts that the codecs share."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import InvalidLength
from protocol.wire import CACHED_ARRAY_ITEMS, MAX_INT32, array_struct, pack_uvarint, read_uvarint


@given(st.integers(0, MAX_INT32))
def test_a_varint_reads_back_from_its_position(value: int) -> None:
    encoded = pack_uvarint(value)

    assert read_uvarint(b"xx" + encoded + b"yy", 2) == (value, 2 + len(encoded))


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (0, b"\0"),
        (127, b"\x7f"),
        (128, b"\x80\1"),
        (16_383, b"\xff\x7f"),
        (16_384, b"\x80\x80\1"),
        (MAX_INT32, b"\xff\xff\xff\xff\7"),
    ],
)
def test_a_varint_grows_by_a_byte_every_seven_bits(value: int, encoded: bytes) -> None:
    assert pack_uvarint(value) == encoded


def test_a_varint_may_be_written_longer_than_it_must() -> None:
    assert read_uvarint(b"\x81\x80\x80\x80\0", 0) == (1, 5)


@pytest.mark.parametrize("encoded", [b"\xff\xff\xff\xff\x08", b"\xff\xff\xff\xff\xff\1", b"\x80" * 1_000_000])
def test_a_varint_above_31_bits_is_refused(encoded: bytes) -> None:
    with pytest.raises(InvalidLength):
        read_uvarint(encoded, 0)


@pytest.mark.parametrize("count", [0, 1, CACHED_ARRAY_ITEMS, CACHED_ARRAY_ITEMS + 1])
def test_a_repeated_struct_packs_that_many_items(count: int) -> None:
    assert array_struct("hx", count).pack(*[1] * count) == b"\0\1\0" * count


def test_structs_of_long_arrays_are_not_kept() -> None:
    assert array_struct("i", CACHED_ARRAY_ITEMS) is array_struct("i", CACHED_ARRAY_ITEMS)
    assert array_struct("i", CACHED_ARRAY_ITEMS + 1) is not array_struct("i", CACHED_ARRAY_ITEMS + 1)
