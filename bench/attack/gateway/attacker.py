# SPDX-License-Identifier: Apache-2.0
"""A process that attacks: `python -m bench.attack.gateway.attacker BROKER NODE SEED SECONDS KIND ...`.

BROKER and NODE are ports of the gateway: a broker's, and that of a node of ours. The kinds take turns, shuffled anew
each time, until the time is over. What was sent and what came of it is printed as JSON, by kind.
"""

import json
import socket
import struct
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from random import Random
from typing import Final

from bench.attack.gateway import mix
from bench.attack.node import connect, read_frame
from bench.cluster import Address

HOLD_S: Final = 3.0
"""How long connections stay that do not read."""
TURN_S: Final = 20.0
"""A kind begins nothing more after so long, in one turn."""
PATIENCE_S: Final = 10.0
"""How long an answer may not go on before its client gives up."""
LARGE_CLIENTS: Final = 60
NAMING_CLIENTS: Final = 10
LISTING_CLIENTS: Final = 10
COMMITTING_CLIENTS: Final = 10
BRIEF_CLIENTS: Final = 2_000
HALVES: Final = (50, 400)
TO_BROKER: Final = 0.25
"""So many of the connections that may go anywhere go to the port of a broker."""
RESET: Final = struct.pack("ii", 1, 0)
"""SO_LINGER so that closing sends an RST."""

TURNS: Final = "turns"
CONNECTIONS: Final = "connections"
SENT: Final = "sent"
ANSWERS: Final = "answers"
CLOSED: Final = "closed"
"""Connections that the other side ended while something was sent or read."""
LATE: Final = "late"
"""Connections where nothing went on for too long."""

Make = Callable[[Random], bytes]


class Attacker:
    """Opens connections, sends, reads or does not, and counts."""

    def __init__(self, broker: Address, node: Address, seed: str, seconds: float) -> None:
        self._broker = broker
        self._node = node
        self._random = Random(seed)
        self._ends = time.monotonic() + seconds
        self._turn_ends = self._ends
        self.counts: dict[str, Counter[str]] = {}
        self._count: Counter[str] = Counter()

    def run(self, kinds: Sequence[str]) -> None:
        """Attack until the time is over."""
        turns: list[str] = []
        while time.monotonic() < self._ends:
            turns = turns or self._random.sample(kinds, len(kinds))
            self._take_turn(turns.pop())

    def _take_turn(self, kind: str) -> None:
        self._count = self.counts.setdefault(kind, Counter())
        self._count[TURNS] += 1
        self._turn_ends = min(self._ends, time.monotonic() + TURN_S)
        KINDS[kind](self)

    @property
    def _is_over(self) -> bool:
        """Whether this turn is."""
        return time.monotonic() >= self._turn_ends

    # --- the kinds ---

    def large_unread(self) -> None:
        """All at once ask for the 8 MB of a group, and do not read them."""
        self._hold(LARGE_CLIENTS, lambda _: mix.fetch_large(), anywhere=False)

    def large_read(self) -> None:
        """One after the other asks for the 8 MB of a group, and reads them."""
        self._read(LARGE_CLIENTS, lambda _: mix.fetch_large(), anywhere=False)

    def names_unread(self) -> None:
        """All at once name thousands of groups or topics, and do not read."""
        self._hold(NAMING_CLIENTS, mix.many_names)

    def names_read(self) -> None:
        """One after the other does so, and reads."""
        self._read(NAMING_CLIENTS, mix.many_names)

    def halves(self) -> None:
        """Many send half a request of 900 KB, and then nothing."""
        self._hold(self._random.randint(*HALVES), mix.half_request)

    def lists_unread(self) -> None:
        """All at once ask a hundred times for all groups and topics, and do not read."""
        self._hold(LISTING_CLIENTS, mix.pipelined_lists, requests=mix.PIPELINED)

    def brief(self) -> None:
        """One after the other connects, sends a request, and closes at once, half of them with an RST."""
        for _ in range(BRIEF_CLIENTS):
            with self._noted(), self._ask(mix.small_request) as sock:
                if self._random.getrandbits(1):
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            if self._is_over:
                break

    def commits_unknown(self) -> None:
        """One after the other commits to thousands of partitions of topics that do not exist."""
        self._read(COMMITTING_CLIENTS, mix.unknown_commit, anywhere=False)

    # --- how ---

    def _hold(self, count: int, make: Make, *, requests: int = 1, anywhere: bool = True) -> None:
        """So many connections send, stay for a while without reading, and close."""
        with ExitStack() as connections:
            for _ in range(count):
                with self._noted():
                    connections.enter_context(self._ask(make, requests=requests, anywhere=anywhere))
                if self._is_over:
                    return
            time.sleep(max(0.0, min(HOLD_S, self._ends - time.monotonic())))

    def _read(self, count: int, make: Make, *, anywhere: bool = True) -> None:
        """So many connections, one after the other, send one request and read the answer."""
        for _ in range(count):
            with self._noted(), self._ask(make, anywhere=anywhere) as sock:
                read_frame(sock)
                self._count[ANSWERS] += 1
            if self._is_over:
                break

    def _ask(self, make: Make, *, requests: int = 1, anywhere: bool = True) -> socket.socket:
        """Connect to the port of our node, or to either where that is all the same, and send."""
        to_broker = anywhere and self._random.random() < TO_BROKER
        sock = connect(self._broker if to_broker else self._node)
        self._count[CONNECTIONS] += 1
        sock.settimeout(PATIENCE_S)
        try:
            sock.sendall(make(self._random))
        except BaseException:
            sock.close()
            raise
        self._count[SENT] += requests
        return sock

    @contextmanager
    def _noted(self) -> Iterator[None]:
        """Count connections that end here."""
        try:
            yield
        except TimeoutError:
            self._count[LATE] += 1
        except OSError:
            self._count[CLOSED] += 1


KINDS: Final[Mapping[str, Callable[[Attacker], None]]] = {
    kind.__name__: kind
    for kind in (
        Attacker.large_unread,
        Attacker.large_read,
        Attacker.names_unread,
        Attacker.names_read,
        Attacker.halves,
        Attacker.lists_unread,
        Attacker.brief,
        Attacker.commits_unknown,
    )
}


def main(arguments: Sequence[str]) -> None:
    """Attack, and print the counts."""
    broker, node, seed, seconds, *kinds = arguments
    attacker = Attacker(Address.parse(broker), Address.parse(node), seed, float(seconds))
    attacker.run(kinds)
    print(json.dumps(attacker.counts))


if __name__ == "__main__":
    main(sys.argv[1:])
