# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.gateway.matrix.record`: record Kafka's answers to all users again.

Starts a real Kafka (Java 17 and Maven), sends all requests, and writes recording.txt, which changes only if Kafka's
answers, the requests or the sets of permissions have. Ends with status 2 without Java or Maven.
"""

import sys
import tempfile
import time
from pathlib import Path

from bench.maven import Missing
from tests.gateway.matrix.permission_sets import permission_sets
from tests.gateway.matrix.play import play, topic_ids
from tests.gateway.matrix.recording import store
from tests.gateway.matrix.secured import PROTOCOL, secured_cluster
from tests.kafka.jars import locate_kafka


def main() -> int:
    """Do what the module says; returns the exit status."""
    if isinstance(missing := locate_kafka(), Missing):
        sys.stdout.write(f"{missing.reason}\n")
        return 2
    sets = permission_sets()
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as work, secured_cluster(Path(work), sets) as cluster:
        played = play(cluster.address(1, PROTOCOL), sets, topic_ids(cluster.address(1)))
    store(played, sets)
    cases = sum(len(part.cases) for part in played.values())
    seconds = time.monotonic() - started
    sys.stdout.write(
        f"{len(played)} kinds of request, {len(sets)} sets of permissions: {cases} cases in {seconds:.1f} s\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
