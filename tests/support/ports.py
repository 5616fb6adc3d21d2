# SPDX-License-Identifier: Apache-2.0
"""Free loopback ports for the servers that tests start."""

import os
import random
import socket

# Below the range that Linux, macOS and Windows take outgoing ports from (32768 and up): while a server is down
# between a kill and its restart, no client's own connection can sit on the server's port.
_LOWEST = 15_000
_HIGHEST = 32_000


def _ours() -> range:
    """A part of them for each process of a run: between a look at a port and its use nobody else takes it."""
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    share = (_HIGHEST - _LOWEST) // int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    return range(_LOWEST + number * share, _LOWEST + (number + 1) * share)


def free_ports(count: int) -> list[int]:
    """Return `count` different TCP ports of 127.0.0.1 that nothing listens on now."""
    chosen: list[int] = []
    for port in random.SystemRandom().sample(_ours(), k=200 + count):
        if len(chosen) == count:
            break
        if _is_free(port):
            chosen.append(port)
    assert len(chosen) == count, f"found only {len(chosen)} of {count} free ports"
    return chosen


def free_port_run(count: int) -> int:
    """Return the first of `count` TCP ports of 127.0.0.1 in a row that nothing listens on now."""
    ports = _ours()
    for first in random.SystemRandom().sample(ports[:-count], k=200):
        if all(_is_free(first + index) for index in range(count)):
            return first
    raise AssertionError(f"no {count} free ports in a row")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
