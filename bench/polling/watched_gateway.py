# SPDX-License-Identifier: Apache-2.0
"""A gateway's process that notes how long each turn of its event loop takes; `watched` has it started."""

import sys
from functools import partial

from bench.forwarding.watched import run_timed
from bench.polling.watched import GATEWAY
from coordinator.runtime.allocator import fix_mmap_threshold
from coordinator.workers import worker_main
from coordinator.workers.gateway_main import make_process

if __name__ == "__main__":
    fix_mmap_threshold()
    name = f"{GATEWAY}{sys.argv[-1]}"
    sys.exit(worker_main.main(sys.argv[1:], make_process, partial(run_timed, name=name)))
