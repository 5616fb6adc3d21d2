# SPDX-License-Identifier: Apache-2.0
"""`python -m bench failover`: a gateway's process is killed while clients commit."""

import argparse
import os
import shlex
import signal
import socket
import struct
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bench import figures
from bench.cluster import Address, Cluster, Unprepared
from bench.failover.clients import BETWEEN_S, committing
from bench.failover.tables import Measured, Round, markdown
from bench.kafka import Kafka
from bench.machine import describe
from bench.page import write_part
from bench.polling.fronting import Fronting, fronting
from bench.procstat import PROC, process_cpu_s
from bench.servers import Groupkeeper
from coordinator.workers.serve import GATEWAY_MODULE

TOPIC: Final = "failover"
TRY_S: Final = 0.005
WITHIN_S: Final = 60.0
REST_S: Final = 0.5
"""A process that has used no processor time for so long has imported all that it is to import."""
REST_CPU_S: Final = 0.02
REQUEST: Final = struct.pack(">ihhih", 10, 18, 0, 1, -1)
"""ApiVersions v0."""


def main(arguments: Sequence[str]) -> int:
    """Measure and print; returns the exit status. Raises Unprepared, NotStarted, KafkaUnavailable."""
    options = _parser().parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="groupkeeper-bench-") as work:
        facts = describe(Path(work))
        measured = _measure(Path(work), options.rounds)
    facts["command"] = f"`{shlex.join(['python', '-m', 'bench', 'failover', *arguments])}`"
    text = markdown(measured, facts)
    print(text)
    if options.write:
        write_part(options.write, text)
    return 0


def _measure(work: Path, rounds: int) -> Measured:
    took: list[Round] = []
    spare_mib: list[float] = []
    with Kafka("Kafka", work / "kafka") as broker:
        broker.start()
        with Cluster(broker.address) as cluster:
            cluster.ensure_topic(TOPIC, 1)
        for number in range(rounds):
            for has_spare in (True, False):
                settings = {"gateway.spare": str(has_spare).lower()}
                place = work / f"gateway-{number}-{has_spare}"
                with fronting(Groupkeeper, place, [broker.address], settings) as (_, front):
                    (serving,) = _started(front, 1)
                    if has_spare:
                        (spare,) = set(_started(front, 2)) - {serving}
                        spare_mib.append(_own_mib(spare))
                    took.append(_kill(front.broker, serving, has_spare=has_spare))
    return Measured(rounds, TRY_S * 1e3, BETWEEN_S * 1e3, took, spare_mib)


def _started(front: Fronting, count: int) -> list[int]:
    """The processes of the gateway, once there are so many and all rest, the oldest first. Raises Unprepared."""
    deadline = time.monotonic() + WITHIN_S
    while time.monotonic() < deadline:
        pids = front.pids_of(GATEWAY_MODULE)
        before = [process_cpu_s(pid) for pid in pids]
        time.sleep(REST_S)
        used = [process_cpu_s(pid) - cpu_s for pid, cpu_s in zip(pids, before, strict=True)]
        if len(pids) >= count and all(cpu_s < REST_CPU_S for cpu_s in used):
            return pids[:count]
    raise Unprepared(f"there are no {count} processes of the gateway that rest")


def _kill(port: Address, pid: int, *, has_spare: bool) -> Round:
    with committing(port, TOPIC) as clients:
        killed = time.monotonic()
        os.kill(pid, signal.SIGKILL)
        while (PROC / str(pid)).exists() and _answers(port):
            pass  # it has not ended yet
        answered = _answered(port)
        ms = {client.name: (client.first_after(killed) - killed) * 1e3 for client in clients}
    return Round(has_spare, (answered - killed) * 1e3, ms)


def _answered(port: Address) -> float:
    """When a new connection gets an answer. Raises Unprepared."""
    deadline = time.monotonic() + WITHIN_S
    while time.monotonic() < deadline:
        if _answers(port):
            return time.monotonic()
        time.sleep(TRY_S)
    raise Unprepared(f"nothing has answered at {port} within {WITHIN_S:g} s")


def _answers(port: Address) -> bool:
    try:
        with socket.create_connection(port, WITHIN_S) as connection:
            connection.sendall(REQUEST)
            return len(connection.recv(8)) > 0
    except OSError:
        return False


def _own_mib(pid: int) -> float:
    """The memory of a process that no other has."""
    kib = sum(
        int(line.split()[1])
        for line in (PROC / str(pid) / "smaps_rollup").read_text().splitlines()
        if line.startswith(("Private_Clean:", "Private_Dirty:"))
    )
    return kib / 1024


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench failover", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="kills of each kind (%(default)s)")
    parser.add_argument("--write", type=Path, nargs="?", const=figures.RESULTS, metavar="FILE",
                        help="write the table there (bench/RESULTS.md)")  # fmt: skip
    return parser
