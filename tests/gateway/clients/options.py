# SPDX-License-Identifier: Apache-2.0
"""What the clients' processes are told, what they say, and what they produce.

Each is a member of a group, and says `read N` of each record; where it is told until when, it produces, too, and says
`produced N` at the end. Java's and Go's are told and say the same.
"""

import argparse
import sys
import time
from pathlib import Path
from typing import Protocol

ABORTED = -1
"""The value of records that nobody may read."""
IN_A_TRANSACTION = 3
COMMIT_EVERY_MS = 200
HEARTBEAT_EVERY_MS = 300
"""So soon a member hears that another one wants a share."""


def parse_options() -> argparse.Namespace:
    """`over` and `enough` are files: once they are there, no more is read, and no more produced."""
    parser = argparse.ArgumentParser()
    for name in ("bootstrap", "topic", "group"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--refresh-ms", type=int, required=True, help="how often metadata are asked for anew")
    parser.add_argument("--over", type=Path, required=True)
    parser.add_argument("--enough", type=Path, help="it produces until then")
    parser.add_argument("--pause-ms", type=int, default=0, help="between two records that it produces")
    parser.add_argument("--transactional-id", help="it produces in transactions, and reads what is committed")
    return parser.parse_args()


class Producing(Protocol):
    """What a producer does; each call returns once it is done. The middle three are for transactions."""

    def send(self, number: int) -> None:
        """Produce a record."""

    def begin(self) -> None:
        """Begin a transaction."""

    def commit(self) -> None:
        """Commit it."""

    def abort(self) -> None:
        """Abort it."""

    def close(self) -> None:
        """End."""


def produce(options: argparse.Namespace, producer: Producing) -> None:
    """Produce numbers from 0 on; in transactions every second one is aborted, the last is not."""
    pause_s = options.pause_ms / 1000
    count = 0
    while not options.enough.exists():
        if options.transactional_id is None:
            producer.send(count)
            count += 1
            time.sleep(pause_s)
            continue
        producer.begin()
        for _ in range(IN_A_TRANSACTION):
            producer.send(ABORTED)
        producer.abort()
        producer.begin()
        for _ in range(IN_A_TRANSACTION):
            producer.send(count)
            count += 1
            time.sleep(pause_s)
        producer.commit()
    producer.close()
    say_produced(count)


def say_read(value: bytes) -> None:
    """Say which record was read."""
    _say(f"read {int(value)}")


def say_produced(count: int) -> None:
    """Say how many records there are to be read."""
    _say(f"produced {count}")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")  # in one piece, as others write there, too
    sys.stdout.flush()
