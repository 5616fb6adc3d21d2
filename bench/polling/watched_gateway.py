# SPDX-License-Identifier: Apache-2.0
"""A gateway's process that notes how long each turn of its event loop takes; `watched` has it started."""

import sys
from functools import partial

from bench.forwarding.watched import run_timed
from bench.polling.watched import GATEWAY
from coordinator.runtime.allocator import fix_mmap_threshold
from coordinator.workers.gateway_process import GatewayProcess
from coordinator.workers.process_main import main

if __name__ == "__main__":
    fix_mmap_threshold()
    name = f"{GATEWAY}{sys.argv[-1]}"
    sys.exit(main(sys.argv[1:], GatewayProcess, partial(run_timed, name=name)))
