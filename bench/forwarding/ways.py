# SPDX-License-Identifier: Apache-2.0
"""The ways to the broker."""

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from bench.cluster import Address, Unprepared
from bench.kafka import Kafka
from bench.ports import BROKERS, HOST, free_ports
from bench.procstat import tree_cpu_s
from bench.servers import Groupkeeper, tied_to_us

DIRECTLY: Final = "directly"
HAPROXY: Final = "haproxy"
GROUPKEEPER: Final = "Groupkeeper"
BROKER_ID: Final = 1
START_TIMEOUT_S: Final = 30.0
MISSING: Final = "is not installed (Debian's package haproxy)"
HAPROXY_CONFIG: Final = """\
global
    nbthread 1
defaults
    mode tcp
    timeout connect 5s
    timeout client 60s
    timeout server 60s
listen broker
    bind {here}
    server broker {there}
"""


class Way(NamedTuple):
    """How clients reach the broker, and the process whose CPU that costs, with all its children; None for none."""

    name: str
    address: Address
    pid: int | None = None

    def cpu_s(self) -> float:
        """How much processor time that has used so far."""
        return 0.0 if self.pid is None else tree_cpu_s(self.pid)


@contextmanager
def open_ways(work: Path) -> Iterator[tuple[Kafka, list[Way]]]:
    """A broker, and the ways to it. Raises Unprepared, NotStarted, KafkaUnavailable."""
    at_proxy, behind_proxy = (Address(HOST, port) for port in free_ports(2))
    settings = {"file.delete.delay.ms": "1000"}  # or what was produced and deleted would fill the disk
    with ExitStack() as stack:
        broker = Kafka("Kafka", work / "kafka", settings, also={behind_proxy: at_proxy})
        stack.enter_context(broker)
        broker.start()
        yield (
            broker,
            [
                Way(DIRECTLY, broker.address),
                stack.enter_context(_haproxy(work, at_proxy, behind_proxy)),
                stack.enter_context(_gateway(work, broker.address)),
            ],
        )


@contextmanager
def _haproxy(work: Path, here: Address, there: Address) -> Iterator[Way]:
    program = shutil.which("haproxy")
    if program is None:
        raise Unprepared(f"haproxy {MISSING}")
    config = work / "haproxy.cfg"
    config.write_text(HAPROXY_CONFIG.format(here=here, there=there))
    process = subprocess.Popen(tied_to_us([program, "-db", "-f", str(config)]), stderr=subprocess.DEVNULL)
    try:
        wait_for(here)
        yield Way(HAPROXY, here, process.pid)
    finally:
        process.kill()
        process.wait()


@contextmanager
def _gateway(work: Path, broker: Address) -> Iterator[Way]:
    settings, here = gateway_settings(broker)
    with Groupkeeper(GROUPKEEPER, work / "groupkeeper", settings) as server:
        server.start()
        wait_for(here)
        yield Way(GROUPKEEPER, here, server.pid)


def gateway_settings(broker: Address) -> tuple[dict[str, str], Address]:
    """The settings of a gateway, and where clients will find the broker."""
    here = Address(HOST, free_ports(1, BROKERS)[0])
    base = here.port - BROKER_ID
    return {"upstream.bootstrap.servers": str(broker), "gateway.port.base": str(base)}, here


def wait_for(address: Address) -> None:
    """Return once something listens there. Raises Unprepared."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(address) == 0:
                return
        time.sleep(0.01)
    raise Unprepared(f"nothing listens on {address}")
