# SPDX-License-Identifier: Apache-2.0
"""A worker's process (`process_main`)."""

import sys

from coordinator.workers.process_main import main
from coordinator.workers.worker import Worker

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], Worker))
