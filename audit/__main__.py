# SPDX-License-Identifier: Apache-2.0
"""The script for spark-submit: `spark-submit --py-files groupkeeper-audit.zip audit/__main__.py --log-dirs ...`."""

import sys

from audit.cli import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], "audit"))
