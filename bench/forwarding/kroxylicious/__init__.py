# SPDX-License-Identifier: Apache-2.0
"""kroxylicious, a proxy for Kafka in Java, as a way to the broker.

It listens on all interfaces, which no setting changes: so it is only there for who asks for it.
"""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bench import wire
from bench.cluster import Address, Peer, Unprepared
from bench.forwarding.frames import TIMEOUT_S
from bench.forwarding.ways import BROKER_ID, Way, wait_for
from bench.maven import Missing, locate_jars
from bench.ports import BROKERS, HOST, free_ports
from bench.servers import tied_to_us

NAME: Final = "kroxylicious"
VERSION: Final = "0.12.0"
METADATA_VERSION: Final = 4
HERE: Final = Path(__file__).parent
CONFIG: Final = """\
virtualClusters:
  - name: broker
    targetCluster:
      bootstrapServers: {broker}
    gateways:
      - name: plain
        portIdentifiesNode:
          bootstrapAddress: {bootstrap}
          nodeIdRanges:
            - name: brokers
              start: {id}
              end: {id}
"""


@contextmanager
def kroxylicious(work: Path, broker: Address) -> Iterator[Way]:
    """Start it with its defaults. Raises Unprepared."""
    jars = locate_jars(f"{NAME}-{VERSION}", HERE / "pom.xml")
    if isinstance(jars, Missing):
        raise Unprepared(jars.reason)
    bootstrap = Address(HOST, free_ports(1, BROKERS)[0])
    here = Address(HOST, bootstrap.port + 1)  # behind it come the brokers, by their ids
    config = work / f"{NAME}.yaml"
    config.write_text(CONFIG.format(broker=broker, bootstrap=bootstrap, id=BROKER_ID))
    command = ["java", "-cp", f"{jars}/*", str(HERE / "Main.java"), str(config)]
    process = subprocess.Popen(tied_to_us(command), stderr=subprocess.DEVNULL)
    try:
        wait_for(bootstrap)
        _show_the_broker(bootstrap)
        wait_for(here)
        yield Way(NAME, here, process.pid)
    finally:
        process.kill()
        process.wait()


def _show_the_broker(bootstrap: Address) -> None:
    """It learns from an answer to others where the broker is."""
    call = wire.encode(wire.METADATA, METADATA_VERSION, wire.METADATA.request(topics=[]))
    with Peer(bootstrap, TIMEOUT_S) as peer:
        peer.ask(call)
