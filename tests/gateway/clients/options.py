# SPDX-License-Identifier: Apache-2.0
"""What the clients' processes are told, and what they say."""

import argparse
import json
import sys
from collections.abc import Iterable


def parse_options() -> argparse.Namespace:
    """Where, what and how much; `refresh_ms` is how often the metadata are asked for anew."""
    parser = argparse.ArgumentParser()
    for name in ("bootstrap", "topic", "group"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--refresh-ms", type=int, required=True)
    parser.add_argument("--pause-ms", type=int, required=True)
    return parser.parse_args()


def tell(values: Iterable[bytes]) -> None:
    """Say which records were read, in their order."""
    sys.stdout.write(json.dumps([int(value) for value in values]) + "\n")
