# SPDX-License-Identifier: Apache-2.0
"""The scenarios that start servers themselves: `start`, and `restart` after a crash with many offsets."""

import time
from collections import Counter
from collections.abc import Sequence
from typing import Final

from bench import filling
from bench.cluster import Cluster
from bench.filling import Filling
from bench.procstat import tree_cpu_s, tree_rss_bytes
from bench.report import Result, describe_errors
from bench.scenarios import TOPIC
from bench.servers import Server

IDLE_S: Final = 3.0  # between the first answer and the look at the memory
SAMPLE: Final = 1_000  # groups: enough to meet each of 50 offsets partitions for sure
RECOVERY_TIMEOUT_S: Final = 600.0
MIB: Final = 1 << 20


def measure_start(server: Server, idle_s: float = IDLE_S) -> Result:
    """Start on an empty directory; the server is stopped at the end. Raises NotStarted."""
    server.reset()
    started = server.start()
    cpu_s = tree_cpu_s(server.pid)
    time.sleep(idle_s)
    findings = {
        "listening_ms": started.listening_ms,
        "answering_ms": started.answering_ms,
        "start_cpu_s": cpu_s,
        "idle_rss_mib": _rss_mib(server),
    }
    server.stop()
    return {"scenario": "start", "findings": findings, **describe_errors(Counter())}


def measure_restart(server: Server, content: Filling) -> Result:
    """Fill, SIGKILL, start, wait until all groups are served, compare every offset; stop at the end.

    Raises NotStarted and Unprepared. A lost or changed offset is an error in the result.
    """
    server.reset()
    server.start()
    with Cluster(server.address) as cluster:
        topic = cluster.ensure_topic(TOPIC, content.partitions)
        cluster.wait_until_served(_sample(content.names()), topic)
        began = time.perf_counter()
        filling.fill(cluster, topic, content)
        fill_s = time.perf_counter() - began
    full_rss_mib = _rss_mib(server)
    server.kill()

    began = time.perf_counter()
    started = server.start()
    with Cluster(server.address, timeout_s=RECOVERY_TIMEOUT_S) as cluster:
        cluster.wait_until_served(_sample(content.names()), topic)
        served_ms = _since_ms(began)
        errors = filling.compare(cluster, topic, content)
        compared_ms = _since_ms(began)
    findings = {
        "offsets": content.groups * content.partitions,
        "fill_s": round(fill_s, 2),
        "full_rss_mib": full_rss_mib,
        "listening_ms": started.listening_ms,
        "served_ms": served_ms,
        "compared_ms": compared_ms,
        "recovered_rss_mib": _rss_mib(server),
    }
    server.stop()
    return {"scenario": "restart", "findings": findings, **describe_errors(errors)}


def _sample(groups: Sequence[str]) -> list[str]:
    return list(groups[:: max(1, len(groups) // SAMPLE)])


def _rss_mib(server: Server) -> float:
    return round(tree_rss_bytes(server.pid) / MIB, 1)


def _since_ms(began: float) -> float:
    return round((time.perf_counter() - began) * 1000, 1)
