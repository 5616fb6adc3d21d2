# SPDX-License-Identifier: Apache-2.0
"""A gateway's process, which `subprocesses` starts as `python -m ... SOCKET PULSE PARENT NUMBER`.

The process ends when its supervisor does; its clients then connect to a gateway of the next supervisor.
"""

import asyncio
import sys

from coordinator.host_resources import HostResources
from coordinator.runtime.allocator import fix_mmap_threshold
from coordinator.workers.gateway_process import GatewayProcess
from coordinator.workers.loop_heartbeat import LoopHeartbeat
from coordinator.workers.worker_main import SeparateProcessHooks, main


def make_process(
    loop: asyncio.AbstractEventLoop, machine: HostResources, pulse: LoopHeartbeat, _number: int
) -> GatewayProcess:
    """Return the gateway of this process; the supervisor sends the gateway's number later, in GatewayStart."""
    return GatewayProcess(loop, machine, SeparateProcessHooks(pulse))


if __name__ == "__main__":
    fix_mmap_threshold()
    sys.exit(main(sys.argv[1:], make_process))
