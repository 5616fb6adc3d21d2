# SPDX-License-Identifier: Apache-2.0
"""Frames are cut the same however the bytes arrive, and no announced length costs memory."""

import struct
import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.bounds import SMALL_FRAME_BYTES
from protocol.errors import FrameTooLarge, InvalidLength, ProtocolError
from protocol.framing import FrameReader

LIMIT = 1000

bodies = st.lists(st.binary(min_size=1, max_size=60), max_size=8)


def framed(*frames: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(frame)) + frame for frame in frames)


def pieces(stream: bytes, cuts: list[int]) -> list[bytes]:
    """The stream, cut at these positions."""
    at = sorted({0, len(stream), *(cut % (len(stream) + 1) for cut in cuts)})
    return [stream[start:end] for start, end in pairwise(at)]


@given(bodies, st.lists(st.integers(0, 10_000), max_size=20), st.binary(max_size=3))
def test_any_split_of_the_bytes_gives_the_same_frames(
    frames: list[bytes], cuts: list[int], rest: bytes
) -> None:
    reader = FrameReader(LIMIT)

    read = [frame for piece in pieces(framed(*frames) + rest, cuts) for frame in reader.feed(piece)]

    assert read == frames
    assert all(type(frame) is bytes for frame in read)
    assert reader.buffered_bytes == len(rest)
    assert reader.failure is None


@given(bodies)
def test_byte_by_byte_each_frame_comes_with_its_last_byte(frames: list[bytes]) -> None:
    reader = FrameReader(LIMIT)

    for frame in frames:
        *head, last = (bytes((byte,)) for byte in framed(frame))
        assert [reader.feed(byte) for byte in head] == [[]] * len(head)
        assert reader.buffered_bytes == len(head)
        assert reader.feed(last) == [frame]
        assert reader.buffered_bytes == 0


@pytest.mark.parametrize(
    ("length", "error"),
    [
        (0, InvalidLength),
        (-1, InvalidLength),
        (-(1 << 31), InvalidLength),
        (LIMIT + 1, FrameTooLarge),
        ((1 << 31) - 1, FrameTooLarge),
    ],
)
def test_a_bad_length_is_refused_with_its_fourth_byte(length: int, error: type[ProtocolError]) -> None:
    reader = FrameReader(LIMIT)
    announced = struct.pack(">i", length)

    assert reader.feed(announced[:3]) == []
    with pytest.raises(error):
        reader.feed(announced[3:])
    assert isinstance(reader.failure, error)


def test_a_frame_of_exactly_the_limit_is_taken() -> None:
    assert FrameReader(LIMIT).feed(framed(b"x" * LIMIT)) == [b"x" * LIMIT]


BOUND = 2 * SMALL_FRAME_BYTES
BOUNDED = 7
"""An api key."""


def frame_of(api_key: int, size: int) -> bytes:
    return struct.pack(">h", api_key) + bytes(size - 2)


@given(st.integers(0, 10), st.integers(BOUND, BOUND + 1), st.booleans())
def test_a_frame_beyond_the_bound_of_its_api_is_refused_once_the_api_is_known(
    cut: int, size: int, bounded: bool
) -> None:
    reader = FrameReader(BOUND + 1, {BOUNDED: BOUND})
    frame = frame_of(BOUNDED if bounded else BOUNDED + 1, size)
    stream = framed(frame)
    if bounded and size > BOUND:
        assert reader.feed(stream[: min(cut, 5)]) == []
        with pytest.raises(FrameTooLarge, match=f"of api key {BOUNDED}"):
            reader.feed(stream[min(cut, 5) : 6])
    else:
        assert reader.feed(stream[:cut]) + reader.feed(stream[cut:]) == [frame]


def test_small_frames_are_good_for_any_api() -> None:
    frame = frame_of(BOUNDED, SMALL_FRAME_BYTES)
    assert FrameReader(BOUND, {BOUNDED: 10}).feed(framed(frame)) == [frame]


@given(bodies.filter(bool), st.lists(st.integers(0, 10_000), max_size=5))
def test_frames_before_a_bad_length_are_handed_out(frames: list[bytes], cuts: list[int]) -> None:
    reader = FrameReader(LIMIT)
    read = []
    with pytest.raises(InvalidLength):  # noqa: PT012 - which of the pieces raises depends on the cuts
        for piece in [*pieces(framed(*frames) + bytes(4), cuts), b"more"]:
            read += reader.feed(piece)

    assert read == frames


def test_nothing_is_read_after_a_bad_length() -> None:
    reader = FrameReader(LIMIT)
    assert reader.feed(framed(b"a") + bytes(4) + framed(b"b")) == [b"a"]
    assert isinstance(reader.failure, InvalidLength)

    for _ in range(2):
        with pytest.raises(InvalidLength):
            reader.feed(framed(b"c"))


def test_an_announced_length_takes_no_memory() -> None:
    reader = FrameReader(1 << 31)
    tracemalloc.start()
    try:
        assert reader.feed(struct.pack(">i", (1 << 31) - 1) + b"x") == []
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak_bytes < 100_000
    assert reader.buffered_bytes == 5


def test_a_big_frame_in_small_pieces_is_copied_a_bounded_number_of_times() -> None:
    body = bytes(4_000_000)
    stream = framed(body)
    reader = FrameReader(len(body))
    read = []
    tracemalloc.start()
    try:
        for start in range(0, len(stream), 1000):
            read += reader.feed(stream[start : start + 1000])
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert read == [body]
    assert peak_bytes < 3 * len(body)
