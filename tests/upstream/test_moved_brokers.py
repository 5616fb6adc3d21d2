# SPDX-License-Identifier: Apache-2.0
"""A broker that has come back at another address is found there by the groups that it coordinates."""

from pathlib import Path
from typing import Any

from coordinator.cluster_requests.request import ClusterRequest
from coordinator.config import Address
from coordinator.upstream.aiokafka_request import UpstreamResponse
from coordinator.upstream.cluster import UpstreamCluster
from coordinator.upstream.config import UpstreamConfig
from protocol.apis import ApiKey
from tests.simulation.gateway.messages import answer

FIND_COORDINATOR = 4
METADATA = 12
FRAME_AT = 9
"""Behind the length, the correlation id and no tags."""


class Moving(UpstreamCluster):
    """A cluster of one broker, which is at `port`."""

    port = 1
    looks = 0

    async def send_request(
        self, question: ClusterRequest[Any], *, node_id: int | None = None
    ) -> UpstreamResponse:
        """What the broker says."""
        place: dict[str, Any] = {"node_id": 3, "host": "localhost", "port": self.port}
        if question.api is ApiKey.METADATA:
            self.looks += 1
            fields: dict[str, Any] = {"brokers": [place], "cluster_id": "moving", "topics": []}
            return said(ApiKey.METADATA, METADATA, fields)
        row = {"key": "g", "error_code": 0, "error_message": "", **place}
        return said(ApiKey.FIND_COORDINATOR, FIND_COORDINATOR, {"coordinators": [row]})


def said(api: ApiKey, version: int, fields: dict[str, Any]) -> UpstreamResponse:
    """An answer with these fields."""
    return UpstreamResponse(api, version, answer(api, version, 1, fields), FRAME_AT)


def read(path: Path) -> bytes:
    raise AssertionError(f"{path} is not read")


async def test_a_coordinator_at_another_address_is_found_there() -> None:
    cluster = Moving(UpstreamConfig((Address("localhost", 1),)), read=read)
    assert await cluster.look_up_coordinator("g") == 3
    assert cluster.brokers[3].address == Address("localhost", 1)
    cluster.port = 2
    cluster.forget_coordinator("g")
    assert await cluster.look_up_coordinator("g") == 3
    assert cluster.brokers[3].address == Address("localhost", 2)
    cluster.forget_coordinator("g")
    await cluster.look_up_coordinator("g")
    assert cluster.looks == 2, "one that is where it was is not looked for"
