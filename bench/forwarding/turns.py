# SPDX-License-Identifier: Apache-2.0
"""What a coordinator feels of forwarding: the longest turn of its loop, and how long a member's heartbeats take.

The member's connection passes the gateway, too, so its heartbeats wait behind what that is forwarding.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from bench.attack.flood import Member
from bench.cluster import Address, Unprepared
from bench.forwarding.streaming import Stream
from bench.forwarding.watched import WatchedGateway
from bench.forwarding.ways import HAPROXY, START_TIMEOUT_S, Way, gateway_settings, wait_for
from bench.report import percentiles_ms
from bench.watched import Turn

NOTHING: Final = "nothing"
THROUGH_US: Final = "through the gateway"
THROUGH_HAPROXY: Final = f"through {HAPROXY}, past us"
"""It takes as much of the machine, and none of the gateway."""
SETTLE_S: Final = 1.0


class Felt(NamedTuple):
    """What was felt while something was forwarded, over all runs."""

    forwarded: str
    mb_per_s: float
    turn_cpu_ms: float
    """The longest turn's own work: processor time of the coordinator's thread."""
    turn_ms: float
    """The longest turn by the clock, which counts the time in which others had the processor."""
    p50_ms: float
    p99_ms: float


class _Notes:
    """What was noted while one thing was forwarded."""

    def __init__(self) -> None:
        self.rates: list[float] = []
        self.times: list[tuple[float, float]] = []
        self.latencies_s: list[float] = []

    def felt(self, forwarded: str, turns: list[Turn]) -> Felt:
        """All of it."""
        mine = [turn for turn in turns if any(began <= turn.ended <= ended for began, ended in self.times)]
        took = percentiles_ms(self.latencies_s)
        if took is None or not mine:
            raise Unprepared("nothing was measured")
        return Felt(
            forwarded,
            sum(self.rates) / len(self.rates),
            max(turn.cpu_s for turn in mine) * 1e3,
            max(turn.wall_s for turn in mine) * 1e3,
            took["p50"],
            took["p99"],
        )


def feel(broker: Address, haproxy: Way, work: Path, seconds: float, runs: int) -> list[Felt]:
    """Start such a gateway, and look at it in turns. Raises NotStarted, OSError, Unprepared."""
    settings, here = gateway_settings(broker)
    settings |= {"group.initial.rebalance.delay.ms": "0", "gateway.adopt": "off", "log.level": "warning"}
    ways: dict[str, Address | None] = {NOTHING: None, THROUGH_HAPROXY: haproxy.address, THROUGH_US: here}
    notes = {name: _Notes() for name in ways}
    with WatchedGateway("Groupkeeper, watched", work / "watched", settings) as server:
        server.start()
        wait_for(here)
        with _joined(server.address) as member:
            member.beat_for(SETTLE_S)
            for _ in range(runs):
                for name, address in ways.items():
                    _feel(member, address, seconds, notes[name])
            if member.refused:
                raise Unprepared(f"{member.refused} heartbeats were refused")
        server.stop()
        turns = server.turns()
    return [each.felt(name, turns) for name, each in notes.items()]


def _feel(member: Member, address: Address | None, seconds: float, notes: _Notes) -> None:
    stream = None if address is None else Stream(address, seconds)
    member.latencies_s.clear()
    began = time.monotonic()
    member.beat_for(seconds)
    notes.times.append((began, time.monotonic()))
    notes.latencies_s += member.latencies_s
    notes.rates.append(0.0 if stream is None else stream.mb_per_s())


@contextmanager
def _joined(address: Address) -> Iterator[Member]:
    """A member, once there is a coordinator."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        member = Member(address)
        if not member.error_code:
            break
        member.close()
        if time.monotonic() > deadline:
            raise Unprepared(f"a member cannot join: error {member.error_code}")
        time.sleep(0.1)
    try:
        yield member
    finally:
        member.close()
