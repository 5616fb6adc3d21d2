# SPDX-License-Identifier: Apache-2.0
"""A gateway's process for tests: `python -m tests.gateway.gateway_main JSON`, which says what it is in front of."""

import asyncio
import json
import sys
from pathlib import Path

import uvloop

from coordinator.config import Address
from coordinator.gateway.book import OurNode
from coordinator.gateway.config import GatewayConfig
from coordinator.gateway.gateway import Gateway
from coordinator.machine import real_machine
from coordinator.telemetry import logs

PATHS = ("certificate", "key", "upstream_ca")


async def main(said: dict[str, object]) -> None:
    """Serve until killed."""
    logs.configure("console", "info")
    brokers, nodes, values = said["brokers"], said["nodes"], said["config"]
    assert isinstance(brokers, dict)
    assert isinstance(nodes, dict)
    assert isinstance(values, dict)
    values |= {name: Path(values[name]) for name in PATHS if name in values}
    gateway = Gateway(GatewayConfig(**values), asyncio.get_running_loop(), real_machine())
    gateway.set_brokers({int(node_id): Address.parse(address) for node_id, address in brokers.items()})
    gateway.set_nodes(
        {
            int(node_id): OurNode(int(node_id), Address.parse(told), Address.parse(private))
            for node_id, (told, private) in nodes.items()
        }
    )
    gateway.start()
    sys.stdout.write("listening\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(main(json.loads(sys.argv[1])))
