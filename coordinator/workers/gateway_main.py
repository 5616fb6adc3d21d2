# SPDX-License-Identifier: Apache-2.0
"""A gateway's process (`process_main`)."""

import sys

from coordinator.runtime.allocator import fix_mmap_threshold
from coordinator.workers.gateway_process import GatewayProcess
from coordinator.workers.process_main import main

if __name__ == "__main__":
    fix_mmap_threshold()
    sys.exit(main(sys.argv[1:], GatewayProcess))
