# SPDX-License-Identifier: Apache-2.0
"""Free loopback ports for the servers that tests start."""

import random
import socket

# Below the range that Linux, macOS and Windows take outgoing ports from (32768 and up): while a server is down
# between a kill and its restart, no client's own connection can sit on the server's port.
_LOWEST = 15_000
_HIGHEST = 32_000


def free_ports(count: int) -> list[int]:
    """Return `count` different TCP ports of 127.0.0.1 that nothing listens on now."""
    chosen: list[int] = []
    candidates = random.SystemRandom().sample(range(_LOWEST, _HIGHEST), k=200 + count)
    for port in candidates:
        if len(chosen) == count:
            break
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        chosen.append(port)
    assert len(chosen) == count, f"found only {len(chosen)} of {count} free ports"
    return chosen
