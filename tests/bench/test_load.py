# SPDX-License-Identifier: Apache-2.0
"""The closed loop: what is counted as a request served, and what as an error."""

import asyncio
import struct
from collections import Counter
from collections.abc import Callable

import pytest

from bench import load
from bench.cluster import Address
from bench.load import Lane, Measured, Prepared, Repeat, Window
from bench.wire import BadReply
from tests.bench.fake import REQUEST, Answer, judge, prepared, reply, serving
from tests.support.idle import idle

REQUESTS = 40


async def play(
    answer: Answer, *, connections: int = 2, depth: int = 4, window: Window | None = None
) -> Measured:
    limit = REQUESTS // connections if window is None else None
    async with serving(answer) as address:
        lanes = [Lane(address, Repeat([prepared(), prepared()], limit)) for _ in range(connections)]
        return await load.run(lanes, depth, window or Window())


async def test_good_replies_are_counted_once_each() -> None:
    measured = await play(reply)
    assert (measured.requests, measured.errors) == (REQUESTS, Counter())
    assert all(latency > 0 for latency in measured.latencies_s)


async def test_a_limit_below_the_depth_is_kept() -> None:
    async with serving(reply) as address:
        measured = await load.run([Lane(address, Repeat([prepared()], 3))], 8, Window())
    assert (measured.requests, measured.errors) == (3, Counter())


async def test_an_error_reply_is_an_error_and_no_request_served() -> None:
    measured = await play(lambda number: reply(number, b"evil") if number % 2 else reply(number))
    assert (measured.requests, measured.errors) == (
        REQUESTS // 2,
        Counter({"bad body b'evil'": REQUESTS // 2}),
    )


async def test_a_good_reply_with_bytes_behind_it_is_not_taken_for_the_known_one() -> None:
    measured = await play(lambda number: reply(number) if number < 5 else reply(number, b"good and more"))
    assert measured.requests == 2 * 4
    assert measured.errors == Counter({"bad body b'good and more'": REQUESTS - 2 * 4})


async def test_a_known_good_reply_is_not_decoded_again() -> None:
    judged: list[bytes] = []

    def remember(answer: bytes) -> None:
        judged.append(answer)
        judge(answer)

    async with serving(reply) as address:
        request = Prepared(REQUEST, remember)
        measured = await load.run([Lane(address, Repeat([request], REQUESTS))], 1, Window())
    assert (measured.requests, len(judged)) == (REQUESTS, 1)


async def test_replies_cut_anywhere_are_put_together() -> None:
    # Each answer brings the rest of the reply before it and the beginning of its own.
    cut = 0
    held = b""

    def in_pieces(number: int) -> bytes:
        nonlocal cut, held
        whole = held + reply(number)
        cut = (cut + 1) % 12
        keep = 0 if number == REQUESTS else cut
        held = whole[len(whole) - keep :]
        return whole[: len(whole) - keep]

    measured = await play(in_pieces, connections=1, depth=REQUESTS)
    assert (measured.requests, measured.errors) == (REQUESTS, Counter())


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(lambda number: reply(number + 1), id="of the next request"),
        pytest.param(lambda number: reply(number) * 2, id="twice"),
        pytest.param(lambda number: struct.pack(">ii", -1, number), id="of a negative length"),
        pytest.param(lambda number: struct.pack(">ii", 0x7FFFFFFF, number), id="of a huge length"),
    ],
)
async def test_a_reply_that_breaks_the_protocol_ends_its_connection(answer: Callable[[int], bytes]) -> None:
    measured = await play(answer, connections=1, depth=1)
    assert measured.requests <= 1
    assert any(kind.startswith("reply to request") for kind in measured.errors)


async def test_a_connection_that_is_closed_counts_all_its_unanswered_requests() -> None:
    measured = await play(lambda number: reply(number) if number <= 6 else None, connections=1, depth=4)
    assert measured.requests == 6
    assert measured.errors == Counter({"connection lost: closed by the server": 4})


async def test_requests_that_are_never_answered_are_errors() -> None:
    window = Window(duration_s=0.05, drain_s=0.05)
    measured = await play(
        lambda number: reply(number) if number <= 4 else b"", connections=1, depth=4, window=window
    )
    assert measured.requests == 4
    assert measured.errors == Counter({"no answer within 0.05 s": 4})


async def test_an_exception_in_the_driver_is_an_error() -> None:
    def broken(answer: bytes) -> None:
        raise RuntimeError("a bug")

    async with serving(reply) as address:
        lanes = [Lane(address, Repeat([Prepared(REQUEST, broken)], 1))]
        measured = await load.run(lanes, 1, Window())
    assert measured.requests == 0
    assert measured.errors.total() > 0


async def test_only_the_window_is_measured_but_errors_of_the_warm_up_count() -> None:
    measured = await play(
        lambda number: reply(number, b"evil") if number == 1 else reply(number),
        connections=1,
        window=Window(warmup_s=0.05, duration_s=0.05),
    )
    assert measured.errors == Counter({"bad body b'evil'": 1})
    assert measured.requests > 0


async def test_the_same_request_may_be_under_way_several_times() -> None:
    seen: list[int] = []

    def note(number: int) -> bytes:
        seen.append(number)
        return reply(number)

    async with serving(note) as address:
        measured = await load.run([Lane(address, Repeat([prepared()], REQUESTS))], 8, Window())
    assert (measured.requests, seen) == (REQUESTS, list(range(1, REQUESTS + 1)))


async def test_without_a_server_there_is_no_measurement() -> None:
    async with serving(reply) as address:
        pass
    with pytest.raises(OSError, match="onnect"):
        await load.run([Lane(address, Repeat([prepared()]))], 1, Window())


def test_a_judge_that_refuses_leaves_nothing_remembered() -> None:
    request = prepared()
    with pytest.raises(BadReply):
        request.examine(reply(1, b"evil")[4:])
    assert (request.good, request.good_length) == (b"", -1)


def test_stopping_ends_a_sequence() -> None:
    source = Repeat([prepared()])
    assert source.first() is not None
    source.stop()
    assert source.first() is None
    assert source.following(prepared(), True) is None


async def test_finished_is_only_done_once_all_is_answered() -> None:
    gate = asyncio.Event()

    async def late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(len(REQUEST))
        await gate.wait()
        writer.write(reply(1))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(late, "127.0.0.1", 0)
    async with server:
        host, port = server.sockets[0].getsockname()
        lanes = [Lane(Address(host, port), Repeat([prepared()], 1))]
        running = asyncio.ensure_future(load.run(lanes, 1, Window()))
        await idle()
        assert not running.done()
        gate.set()
        assert (await running).requests == 1
