# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.peers [PEER ...]`: run the peers' own tests of groups against Groupkeeper.

Prints a table. Ends with status 1 if a test failed or one that passed before did not, and else with 2 if a peer's tests
could not be run. With records (GROUPKEEPER_TEST_TARGET=gateway or kafka) some tests fail on Kafka itself, so there only
those count that passed before. `--record` writes down what passed.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.peers import aiokafka, franz_go, kafka_python, kminion, librdkafka
from tests.peers.fetching import UnavailableError
from tests.peers.outcome import Report, Verdict
from tests.support.target import keeps_records

PEERS: Mapping[str, Callable[[Path], Report]] = {
    peer.NAME: peer.run for peer in (kafka_python, aiokafka, franz_go, librdkafka, kminion)
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the module says; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.peers", description="Run the peers' own tests of groups against Groupkeeper."
    )
    parser.add_argument("peers", nargs="*", metavar="PEER", help=f"one of {', '.join(PEERS)}; all by default")
    parser.add_argument("--record", action="store_true", help="write down which tests passed, for later runs")
    options = parser.parse_args(arguments)
    if unknown := set(options.peers) - set(PEERS):
        parser.error(f"no such peer: {', '.join(sorted(unknown))}")
    return max(
        (_status(run_peer(name), record=options.record) for name in options.peers or PEERS), key=_weight
    )


def _weight(status: int) -> int:
    """A test that failed is worse than tests that could not be run."""
    return (0, 2, 1)[status]


def _status(report: Report, *, record: bool) -> int:
    """Print the report, with what is lost; returns the exit status that it deserves."""
    for line in report.lines():
        say(line)
    if report.unavailable:
        return 2
    if record:
        report.record()
    lost = report.lost()
    for name in lost:
        say(f"  passed before, and does not now: {name}")
    failed = [] if keeps_records() else report.names(Verdict.FAILED)
    return 1 if lost or failed else 0


def run_peer(name: str) -> Report:
    """Run one peer's tests; the report says so where they cannot be had."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="groupkeeper-peers-") as work:
        try:
            report = PEERS[name](Path(work))
        except UnavailableError as error:
            return Report(name, unavailable=str(error))
    report.seconds = time.monotonic() - started
    return report


def say(text: str) -> None:
    """Print a line."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
