# SPDX-License-Identifier: Apache-2.0
"""`python -m bench closing`: how long a node's, or a gateway's, event loop is held by connections that close at once.

A process that holds them is killed, as when a host dies. The same is done to a server of the same loop whose protocol
does nothing: what that takes is the loop's own, and a node's share is what it takes more. A gateway has a second
connection for each, to its broker. The turns are those of the
loop's thread by its processor time, between two calls of a timer of a millisecond.
"""

import argparse
import asyncio
import gc
import signal
import socket
import subprocess
import sys
import tempfile
import time
from array import array
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, cast

import uvloop

from bench.ports import HOST, free_port_run
from bench.servers import REPOSITORY, tied_to_us
from bench.watched import TimedByLooks
from bench.wire import DESCRIBE_GROUPS, encode
from coordinator.config import Address, load
from coordinator.gateway.config import GatewayConfig
from coordinator.gateway.gateway import Gateway
from coordinator.host_resources import real_machine
from coordinator.runtime.garbage import GC_THRESHOLDS
from coordinator.single_node import open_single_node
from coordinator.telemetry import logs

LOOPS: Final[dict[str, Callable[[], asyncio.AbstractEventLoop]]] = {
    "asyncio": asyncio.SelectorEventLoop,
    "uvloop": uvloop.new_event_loop,
}
QUESTION: Final = encode(DESCRIBE_GROUPS, 0, DESCRIBE_GROUPS.request(groups=["closing"])).frame
"""Which a node answers, and a gateway where it stands for a broker."""
OPENED_AT_ONCE: Final = 100
CONNECTIONS_MAX: Final = 1_000_000
REST_S: Final = 0.5
"""Between opening and closing, and after the last connection is closed."""
TURNS: Final = "turns"
"""The file that a server leaves."""
HEADING: Final = f"{'loop':8} {'server':8} {'longest turn':>13} {'all turns':>10} {'over 20 ms':>11}"


async def _serve_node(port: int, data_dir: Path) -> None:
    chosen = [f"listen={HOST}:{port}", f"data.dir={data_dir}", "metrics.listen=", "log.level=warning"]
    settings = load(None, {}, chosen, {})
    logs.configure(settings.log_format, settings.log_level)
    app = open_single_node(settings, asyncio.get_running_loop(), real_machine())
    try:
        await app.start()
        await asyncio.get_running_loop().create_future()
    finally:
        await app.stop()


async def _serve_nothing(port: int, _data_dir: Path) -> None:
    """A server that takes connections and answers the first bytes of each with one byte."""
    loop = asyncio.get_running_loop()
    await loop.create_server(_Empty, HOST, port, backlog=1024)
    await loop.create_future()


class _Empty(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        cast(asyncio.Transport, self._transport).write(b"\0")  # uvloop's does not inherit from it


async def _serve_gateway(port: int, _data_dir: Path) -> None:
    """The process of a gateway, before a broker on the next port."""
    config = GatewayConfig(
        host=HOST,
        port_base=port - 1,
        max_connections=CONNECTIONS_MAX,
        max_connections_per_ip=CONNECTIONS_MAX,
        idle_ms=600_000,
        request_bytes_max=1 << 20,
    )
    gateway = Gateway(config, asyncio.get_running_loop(), real_machine())
    gateway.set_brokers_and_listen({1: Address(HOST, port + 1)})
    gateway.start()
    try:
        await asyncio.get_running_loop().create_future()
    finally:
        await gateway.stop()


SERVERS: Final = {"node": _serve_node, "gateway": _serve_gateway, "nothing": _serve_nothing}


async def _until_terminated(kind: str, port: int, data_dir: Path) -> bytes:
    loop = asyncio.get_running_loop()
    looks = TimedByLooks(loop)
    serving = loop.create_task(SERVERS[kind](port, data_dir))
    loop.add_signal_handler(signal.SIGTERM, serving.cancel)
    await asyncio.wait([serving])
    return looks.turns.tobytes()


def _serve(loop: str, kind: str, port: str, work: str) -> None:
    gc.set_threshold(*GC_THRESHOLDS)
    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        turns = runner.run(_until_terminated(kind, int(port), Path(work) / "data"))
        Path(work, TURNS).write_bytes(turns)


def _hold(port: str, count: str) -> None:
    """Open so many connections, each of which has heard something, and wait to be killed."""
    held: list[socket.socket] = []
    for _ in range(0, int(count), OPENED_AT_ONCE):
        new = [socket.create_connection((HOST, int(port)), timeout=60) for _ in range(OPENED_AT_ONCE)]
        for each in new:
            each.sendall(QUESTION)
        for each in new:
            assert each.recv(1)
        held += new
    print("held", flush=True)
    signal.pause()


def _measure(loop: str, kind: str, count: int) -> tuple[float, float, int]:
    """The longest turn and all turns together, in ms, and how many were over 20 ms."""
    with tempfile.TemporaryDirectory(prefix="closing-") as work:
        return _measured(loop, kind, count, Path(work))


def _measured(loop: str, kind: str, count: int, work: Path) -> tuple[float, float, int]:
    port = free_port_run(2)
    ours = [sys.executable, "-m", "bench.closing"]

    def serve(loop: str, kind: str, port: int, work: Path) -> "subprocess.Popen[bytes]":
        work.mkdir(exist_ok=True)
        serving = [*ours, "serve", loop, kind, str(port), str(work)]
        started = subprocess.Popen(tied_to_us(serving), cwd=REPOSITORY)
        _wait_for(port)
        return started

    # The broker of a gateway takes its connections, and does nothing with them.
    behind = serve("uvloop", "nothing", port + 1, work / "broker") if kind == "gateway" else None
    serving = serve(loop, kind, port, work)
    holding = subprocess.Popen(
        tied_to_us([*ours, "hold", str(port), str(count)]), cwd=REPOSITORY, stdout=subprocess.PIPE, text=True
    )
    assert holding.stdout is not None
    assert holding.stdout.readline() == "held\n"
    time.sleep(REST_S)
    began = time.monotonic()
    holding.kill()
    holding.communicate()
    files = Path(f"/proc/{serving.pid}/fd")
    while len(list(files.iterdir())) >= OPENED_AT_ONCE:
        time.sleep(REST_S)
    time.sleep(REST_S)
    serving.terminate()
    serving.wait()
    if behind is not None:
        behind.terminate()
        behind.wait()
    numbers = array("d", (work / TURNS).read_bytes())
    window = [1e3 * numbers[at + 1] for at in range(0, len(numbers), 3) if numbers[at] > began]
    return max(window), sum(window), sum(turn > 20 for turn in window)


def _wait_for(port: int) -> None:
    while True:
        with socket.socket() as probe:
            if probe.connect_ex((HOST, port)) == 0:
                return
        time.sleep(0.05)


def main(arguments: Sequence[str]) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench closing", description=__doc__)
    parser.add_argument(
        "--connections", type=int, default=9_000, metavar="N", help="a multiple of 100 (%(default)s)"
    )
    parser.add_argument(
        "--rounds", type=int, default=3, metavar="N", help="of which the best counts (%(default)s)"
    )
    options = parser.parse_args(arguments)
    print(f"{options.connections:,} connections that close at once; the best of {options.rounds} rounds")
    print(HEADING)
    for loop in LOOPS:
        for kind in SERVERS:
            longest, total, over = min(
                _measure(loop, kind, options.connections) for _ in range(options.rounds)
            )
            print(f"{loop:8} {kind:8} {longest:10.1f} ms {total:7.0f} ms {over:11}", flush=True)
    return 0


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        _serve(*sys.argv[2:])
    else:
        _hold(*sys.argv[2:])
