# SPDX-License-Identifier: Apache-2.0
"""Integers of a fixed size."""

import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from protocol.fixed_integers import int16_at, int32_at


@given(st.binary(max_size=5), st.integers(-(1 << 15), (1 << 15) - 1))
@example(before=b"", value=-(1 << 15))
@example(before=b"x", value=-1)
def test_an_int16_has_its_sign_wherever_it_stands(before: bytes, value: int) -> None:
    assert int16_at(before + struct.pack(">h", value) + b"behind", len(before)) == value


@given(st.binary(max_size=5), st.integers(-(1 << 31), (1 << 31) - 1))
@example(before=b"", value=-(1 << 31))
@example(before=b"x", value=-1)
def test_an_int32_has_its_sign_wherever_it_stands(before: bytes, value: int) -> None:
    assert int32_at(before + struct.pack(">i", value) + b"behind", len(before)) == value


@pytest.mark.parametrize("missing", [1, 2])
def test_nothing_is_read_behind_the_end(missing: int) -> None:
    with pytest.raises(IndexError):
        int16_at(b"ab"[missing:], 0)
    with pytest.raises(IndexError):
        int32_at(b"xabcd"[:-missing], 1)
