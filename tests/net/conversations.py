# SPDX-License-Identifier: Apache-2.0
"""Random conversations: good, malformed and broken frames, in packets that are cut anywhere, the same by seed.

`python -m tests.net.conversations FIRST LAST` prints what came of each, one JSON document a line, so that two
builds can be compared.
"""

import asyncio
import json
import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

from coordinator.net import connection
from protocol.apis import ApiKey
from tests.net import requests
from tests.net.edge import Edge, settle
from tests.support.idle import IdleLoop

DELAY_MS: Final = 3_000

Make = Callable[[random.Random, int], bytes]


def _commit(rng: random.Random, number: int) -> bytes:
    offsets = {rng.randrange(3): rng.randrange(100) for _ in range(rng.randrange(1, 4))}
    return requests.commit(rng.choice("gh"), offsets, number, metadata="x" * rng.choice((0, 3, 5_000)))


def _fetch(rng: random.Random, number: int) -> bytes:
    return requests.fetch_offsets(rng.choice("ghi"), number)


def _heartbeat(rng: random.Random, number: int) -> bytes:
    return requests.heartbeat(rng.choice("ghi"), rng.choice(("", "nobody")), rng.randrange(-1, 3), number)


def _join(rng: random.Random, number: int) -> bytes:
    return requests.join(rng.choice("ghi"), correlation_id=number, version=rng.choice((3, 9)))


def _api_versions(rng: random.Random, number: int) -> bytes:
    return requests.api_versions(number)


GOOD: Final[tuple[Make, ...]] = (_commit, _fetch, _heartbeat, _join, _api_versions)


def _cut_short(rng: random.Random, number: int) -> bytes:
    frame = rng.choice(GOOD[:4])(rng, number)
    return requests.framed(frame[4 : rng.randrange(5, min(len(frame), 30))])


def _not_served(rng: random.Random, number: int) -> bytes:
    return requests.framed(requests.header(requests.NOT_SERVED, 0, number))


def _bad_version(rng: random.Random, number: int) -> bytes:
    return requests.framed(requests.header(ApiKey.HEARTBEAT, 99, number))


def _bad_length(rng: random.Random, number: int) -> bytes:
    return rng.choice((0, -1, -(1 << 31), (1 << 31) - 1)).to_bytes(4, "big", signed=True)


BAD: Final[tuple[Make, ...]] = (_cut_short, _not_served, _bad_version, _bad_length)


class Planned(NamedTuple):
    """What one client sends."""

    frames: list[bytes]
    good: int
    """How many of them come before the first that is bad."""
    packets: list[bytes]
    seed: int


class Heard(NamedTuple):
    """What came of it."""

    answers: list[bytes]
    closed: bool
    error: str
    """What the connection raised into the event loop; it should be nothing."""
    counted: dict[str, int]


def plan(seed: int) -> Planned:
    """The conversation of this seed; most have a bad frame, many several in a row."""
    rng = random.Random(seed)
    frames = [rng.choice(GOOD)(rng, number) for number in range(1, rng.randrange(2, 8))]
    good = len(frames)
    if rng.random() < 0.9:
        frames += [rng.choice(BAD)(rng, 100 + number) for number in range(rng.randrange(1, 4))]
        frames += [rng.choice(GOOD)(rng, 200 + number) for number in range(rng.randrange(3))]
    data = b"".join(frames)
    cuts = sorted(rng.randrange(len(data)) for _ in range(rng.choice((0, 0, 1, 3, 10))))
    return Planned(
        frames, good, [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)], seed
    )


async def hear(planned: Planned, data_dir: Path) -> Heard:
    """Have the conversation with a server of its own, where flushes end and time passes between the packets."""
    rng = random.Random(planned.seed + 1)
    data_dir.mkdir()  # noqa: ASYNC240 - nothing else runs
    edge = Edge(data_dir, flush_by_itself=False, initial_rebalance_delay_ms=DELAY_MS)
    client = edge.connect()
    error = ""
    for packet in planned.packets:
        try:
            client.send(packet)
        except Exception as raised:  # noqa: BLE001 - the event loop would log it and end the connection
            error = f"{type(raised).__name__}: {raised}"
        if rng.random() < 0.5:
            edge.flush()
        if rng.random() < 0.3:
            edge.timers.advance(DELAY_MS)
        if rng.random() < 0.5:
            await settle()
    for _ in range(len(planned.frames) + 1):  # each join waits for its own delay
        edge.timers.advance(DELAY_MS)
        edge.flush()
        await settle()
    stats = edge.stats
    counted = {
        name: int(getattr(stats, name))
        for name in ("malformed_requests", "unsupported_requests", "oversized_requests", "bytes_sent")
    }
    return Heard(client.answers(), client.transport.closed, error, counted)


def _say(document: Any) -> None:
    sys.stdout.write(json.dumps(document) + "\n")


def _say_all(first: int, last: int) -> None:
    _say({"connection": connection.__file__})
    with tempfile.TemporaryDirectory() as work:
        for seed in range(first, last):
            with asyncio.Runner(loop_factory=IdleLoop) as runner:
                heard = runner.run(hear(plan(seed), Path(work) / str(seed)))
            answers = [answer.hex() for answer in heard.answers]
            _say([seed, answers, heard.closed, heard.error, heard.counted])


if __name__ == "__main__":
    _say_all(int(sys.argv[1]), int(sys.argv[2]))
