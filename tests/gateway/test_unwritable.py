# SPDX-License-Identifier: Apache-2.0
"""What peers send can make messages that no protocol can carry: that ends the connection, and is no fault of ours.

A name of 20,000 bytes that are no UTF-8 is one of 60,000 when it is sent again, and an answer that says that it is
2 GiB long cannot become longer.
"""

from pathlib import Path
from typing import Any, Final

import pytest

from protocol.apis import ApiKey
from protocol.headers import encode_response
from protocol.kafka_python_messages import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    DescribeLogDirsRequest,
    FindCoordinatorRequest,
    ListGroupsRequest,
    MetadataRequest,
    MetadataResponse,
)
from protocol.message_codecs import find_message_codec
from tests.gateway.rig import BROKER_ID, OUR_ID, asked, housed
from tests.support.log_lines import LogLines

GROWS: Final = "G" * 20_000
CLOSED: Final = "closing a connection that breaks the protocol"
MAX_INT32: Final = 2**31 - 1


REQUESTS: Final = {
    "described at our node": (OUR_ID, 0, DescribeGroupsRequest(version=0, groups=[GROWS])),
    "described at a broker": (BROKER_ID, 0, DescribeGroupsRequest(version=0, groups=[GROWS])),
    "deleted": (OUR_ID, 0, DeleteGroupsRequest(version=0, groups_names=[GROWS])),
    "found": (BROKER_ID, 4, FindCoordinatorRequest(version=4, key_type=0, coordinator_keys=[GROWS])),
}


HARMLESS: Final[dict[int, tuple[ApiKey, Any]]] = {
    OUR_ID: (ApiKey.DESCRIBE_LOG_DIRS, DescribeLogDirsRequest(version=1, topics=None)),
    BROKER_ID: (ApiKey.LIST_GROUPS, ListGroupsRequest(version=1)),
}


@pytest.mark.parametrize("case", REQUESTS)
async def test_a_name_that_grows_closes_its_clients_connection_and_no_other(
    tmp_path: Path, lines: LogLines, case: str
) -> None:
    node_id, version, request = REQUESTS[case]
    async with housed(tmp_path, None) as rig:
        client, other = await rig.client(node_id), await rig.client(node_id)
        sent = asked(ApiKey(request.API_KEY), version, request)
        client.send(sent.replace(GROWS.encode(), b"\xff" * len(GROWS)))
        assert await client.ended()
        (closed,) = lines.fields(CLOSED)
        assert "cannot be written" in closed["reason"]
        assert lines.of("exception", "error") == []
        api, harmless = HARMLESS[node_id]
        await other.ask(api, 1, harmless)


async def test_metadata_that_claims_the_longest_length_closes_the_connection(
    tmp_path: Path, lines: LogLines
) -> None:
    async with housed(tmp_path, None) as rig:
        client, broker = await rig.client(BROKER_ID), await rig.broker.peer()
        client.send(asked(ApiKey.METADATA, 8, MetadataRequest(version=8, topics=None)))
        named = MetadataResponse.MetadataResponseBroker(version=8, node_id=1, host="b", port=1, rack=None)
        response = MetadataResponse(version=8, brokers=[named], topics=[], authorized_operations=set())
        body = find_message_codec(ApiKey.METADATA, 8).encode_response(response)
        request = await broker.frame()
        answer = encode_response(int.from_bytes(request[4:8], "big"), body, flexible=False)
        broker.send(MAX_INT32.to_bytes(4, "big") + answer[4:])
        assert await client.ended()
        (closed,) = lines.fields(CLOSED)
        assert "a frame of" in closed["reason"]
        assert lines.of("exception", "error") == []
