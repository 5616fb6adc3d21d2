# SPDX-License-Identifier: Apache-2.0
"""A good request, a malformed one and a bad length in one packet: the good one is answered.

The compiled server lost its answer: a connection that was whole when the packet came was taken to be whole behind
the malformed request, and what it then held of that was no None, which raised TypeError in the event loop.
"""

from pathlib import Path

import pytest

from tests.net import requests
from tests.net.edge import Edge, settle

MALFORMED = requests.framed(b"\x00")
BAD_LENGTH = b"\xff\xff\xff\xff"


@pytest.mark.parametrize("waits", [False, True], ids=["at once", "behind a flush"])
async def test_the_good_request_is_answered(tmp_path: Path, waits: bool) -> None:
    edge = Edge(tmp_path, flush_by_itself=not waits)
    client = edge.connect()

    client.send(requests.commit("g", {0: 1}, 1), MALFORMED, BAD_LENGTH)

    assert client.correlation_ids() == ([] if waits else [1])
    edge.flush()
    await settle()
    assert client.correlation_ids() == ([1] if waits else [])
    assert client.transport.closed
    assert edge.stats.malformed_requests == 1, (
        "what comes behind the first that is malformed is not looked at"
    )
