# SPDX-License-Identifier: Apache-2.0
"""Kafka's own kafka-producer-perf-test and kafka-consumer-perf-test, with their defaults and records of 1 KB."""

import subprocess
from collections.abc import Sequence
from typing import Final

from bench.cluster import Unprepared
from bench.forwarding.frames import LARGE, RECORD_BYTES, new_topic
from bench.forwarding.streaming import Carried
from bench.forwarding.ways import Way
from bench.kafka import QUIET, Kafka, kafka_classpath
from bench.servers import tied_to_us

JAVA: Final = ("java", "-Xmx512M", "-server", QUIET, "-cp")
TOOLS: Final = "org.apache.kafka.tools"
TOOL_TIMEOUT_S: Final = 120.0


def produce(broker: Kafka, way: Way, records: int) -> Carried:
    """Produce so many records to a topic that is new, and deleted afterwards. Raises Unprepared, BadReply."""
    with new_topic(broker.address, f"forwarded-{way.name}") as topic:
        words = ["ProducerPerformance", "--topic", topic, "--num-records", str(records)]
        words += ["--record-size", str(RECORD_BYTES), "--throughput", "-1"]
        cpu_s = way.cpu_s()
        said = _run(way, words)
        used_s = way.cpu_s() - cpu_s
    # N records sent, N records/sec (N MB/sec), …
    rate = float(said.splitlines()[-1].split(" records sent, ")[1].split()[0])
    return _carried(way, records, rate, used_s)


def consume(way: Way, records: int) -> Carried:
    """Consume the first records of the topic that there is. Raises Unprepared."""
    words = ["ConsumerPerformance", "--topic", LARGE, "--num-records", str(records), "--hide-header"]
    cpu_s = way.cpu_s()
    said = _run(way, words)
    used_s = way.cpu_s() - cpu_s
    # start, end, MB, MB/s, records, records/s, ms of rebalance, ms of fetching, and MB/s and records/s of that time
    fields = [field.strip() for field in said.splitlines()[-1].split(",")]
    return _carried(way, int(fields[4]), float(fields[-1]), used_s)


def _carried(way: Way, records: int, records_per_s: float, used_s: float) -> Carried:
    return Carried(way.name, records_per_s * RECORD_BYTES / 1e6, used_s / (records * RECORD_BYTES / 1e9))


def _run(way: Way, words: Sequence[str]) -> str:
    tool, *options = words
    command = [*JAVA, kafka_classpath(), f"{TOOLS}.{tool}", "--bootstrap-server", str(way.address), *options]
    done = subprocess.run(
        tied_to_us(command), capture_output=True, text=True, check=False, timeout=TOOL_TIMEOUT_S
    )
    if done.returncode or not done.stdout.strip():
        raise Unprepared(f"{tool} has failed ({way.name}): {(done.stderr or done.stdout).strip()[-300:]}")
    return done.stdout.strip()
