# SPDX-License-Identifier: Apache-2.0
"""A broker that does not answer in time: it may still do what it was asked, so nothing is sent twice."""

from pathlib import Path

import pytest

from coordinator.cluster_requests.request import make_plain_request
from coordinator.config import Address
from coordinator.upstream.cluster import UpstreamCluster
from coordinator.upstream.config import UpstreamConfig
from coordinator.upstream.errors import UpstreamTimeout
from protocol.apis import ApiKey
from protocol.kafka_python_messages import DeleteGroupsRequest, DeleteGroupsResponse
from tests.cli.fake import SILENCE, FakeNode

DELETION = make_plain_request(ApiKey.DELETE_GROUPS, DeleteGroupsRequest(groups_names=["g"]))


async def test_a_request_that_timed_out_is_not_sent_again_and_its_connection_is_reset() -> None:
    with FakeNode() as node:
        node.answers[ApiKey.DELETE_GROUPS] = lambda _request, _version: DeleteGroupsResponse(results=[])
        config = UpstreamConfig((Address("127.0.0.1", node.port),), request_timeout_ms=500)
        cluster = UpstreamCluster(config, read=Path.read_bytes)
        await cluster.send_request(DELETION)  # so the connection was used, and may have been closed since
        node.answers[ApiKey.DELETE_GROUPS] = lambda _request, _version: SILENCE
        with pytest.raises(UpstreamTimeout):
            await cluster.send_request(DELETION)
        assert node.count(ApiKey.DELETE_GROUPS) == 2
        await cluster.close()
    assert node.resets == 1, "what the system has not sent by then would arrive after later requests"
