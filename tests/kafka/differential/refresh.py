# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.kafka.differential.refresh [WORD ...]`: make the golden transcripts anew.

Starts a real Kafka (Java 17 and Maven) and a Groupkeeper, plays every scenario, or those whose names contain one of
the words, and writes golden/. Says where Groupkeeper answers otherwise, and ends with status 1 if that is anywhere
but in a scenario that is marked as different, or if a script could not go on.
"""

import argparse
import difflib
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench.maven import Missing
from tests.kafka.differential.catalogue import Scenario, all_scenarios
from tests.kafka.differential.goldens import GROUPKEEPER, KAFKA, load, store
from tests.kafka.differential.play import BROKEN, Transcript, play_all
from tests.kafka.differential.servers import groupkeeper_servers, kafka_servers
from tests.kafka.jars import locate_kafka


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the module says; returns the exit status."""
    parser = argparse.ArgumentParser(prog="refresh", description="Make the golden transcripts anew.")
    parser.add_argument("words", nargs="*", help="only scenarios whose name contains one of these")
    parser.add_argument(
        "--check", action="store_true", help="write nothing: compare Groupkeeper with the goldens there are"
    )
    options = parser.parse_args(arguments)
    scenarios = all_scenarios()
    chosen = [s for s in scenarios if not options.words or any(word in s.name for word in options.words)]
    theirs = load(KAFKA)
    if not options.check:
        if isinstance(missing := locate_kafka(), Missing):
            say(missing.reason)
            return 2
        theirs |= _play("Kafka", chosen)
        store(KAFKA, scenarios, theirs)
    ours = _play("Groupkeeper", chosen)
    if not options.check:
        on_purpose = {s.name: ours[s.name] for s in chosen if s.differs}
        store(GROUPKEEPER, [s for s in scenarios if s.differs], load(GROUPKEEPER) | on_purpose)
    return _report(chosen, theirs, ours)


def say(text: str) -> None:
    """Print a line."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _play(kind: str, scenarios: Sequence[Scenario]) -> dict[str, Transcript]:
    wanted = sorted({scenario.settings for scenario in scenarios})
    started = time.monotonic()
    servers = kafka_servers if kind == "Kafka" else groupkeeper_servers
    with tempfile.TemporaryDirectory() as work, servers(Path(work), wanted) as running:
        ready = time.monotonic()
        played = play_all(scenarios, running)
    ended = time.monotonic()
    say(
        f"{kind}: started in {ready - started:.1f} s, {len(scenarios)} scenarios played in {ended - ready:.1f} s"
    )
    return played


def _report(scenarios: Sequence[Scenario], theirs: dict[str, Transcript], ours: dict[str, Transcript]) -> int:
    wrong = 0
    for scenario in scenarios:
        kafka, groupkeeper = theirs.get(scenario.name, []), ours[scenario.name]
        broken = [line for line in kafka if line.startswith(BROKEN)]
        if broken:
            wrong += 1
            say(f"{scenario}: on Kafka the script could not go on: {broken[0]}")
        elif (kafka == groupkeeper) == (scenario.differs is not None):
            wrong += 1
            say(f"\n{scenario}: " + ("does not differ" if scenario.differs else "differs"))
            for line in difflib.unified_diff(kafka, groupkeeper, "kafka", "groupkeeper", lineterm="", n=3):
                say(f"    {line}")
    say(f"{wrong} of {len(scenarios)} scenarios are not as they should be")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
