# SPDX-License-Identifier: Apache-2.0
"""Before a login nothing is answered that a broker would not answer, though no broker is needed to answer it."""

from pathlib import Path
from typing import Any, Final

import pytest

from protocol.apis import ApiKey
from protocol.kafka_python_messages import (
    DeleteGroupsRequest,
    DescribeConfigsRequest,
    DescribeGroupsRequest,
    DescribeLogDirsRequest,
    IncrementalAlterConfigsRequest,
    ListGroupsRequest,
    ListTransactionsRequest,
    MetadataResponse,
    OffsetDeleteRequest,
)
from protocol.message_codecs import find_message_codec
from tests.gateway.rig import BROKER_ID, OUR_ID, asked, housed, read_request

BROKER: Final = 4
VERSIONS: Final = {
    ApiKey.LIST_GROUPS: 2,
    ApiKey.DESCRIBE_GROUPS: 3,
    ApiKey.DELETE_GROUPS: 1,
    ApiKey.OFFSET_DELETE: 0,
    ApiKey.DESCRIBE_LOG_DIRS: 1,
    ApiKey.LIST_TRANSACTIONS: 0,
    ApiKey.DESCRIBE_CONFIGS: 1,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: 0,
}
RESOURCE: Final[dict[str, Any]] = {"resource_type": BROKER, "resource_name": str(OUR_ID)}
OF_OURS: Final = [
    DescribeLogDirsRequest(version=1, topics=None),
    ListTransactionsRequest(version=0, state_filters=[], producer_id_filters=[]),
    DescribeConfigsRequest(
        version=1,
        resources=[
            DescribeConfigsRequest.DescribeConfigsResource(version=1, configuration_keys=None, **RESOURCE)
        ],
        include_synonyms=False,
    ),
    IncrementalAlterConfigsRequest(
        version=0,
        resources=[IncrementalAlterConfigsRequest.AlterConfigsResource(version=0, configs=[], **RESOURCE)],
        validate_only=True,
    ),
]
OF_BROKERS: Final = [
    ListGroupsRequest(version=2),
    DescribeGroupsRequest(version=3, groups=["g"], include_authorized_operations=False),
    DeleteGroupsRequest(version=1, groups_names=["g"]),
    OffsetDeleteRequest(version=0, group_id="g", topics=[]),
]
ASKED: Final = [(OUR_ID, each) for each in OF_OURS] + [(BROKER_ID, each) for each in OF_BROKERS]


def name_of(case: object) -> str:
    return type(case).__name__ if not isinstance(case, int) else f"at {case}"


@pytest.mark.parametrize(("node_id", "request_"), ASKED, ids=name_of)
async def test_what_needs_no_broker_is_answered_once_a_broker_has_answered_the_client(
    tmp_path: Path, node_id: int, request_: Any
) -> None:
    api = ApiKey(request_.API_KEY)
    async with housed(tmp_path, asks_for_login=True) as rig:
        client = await rig.client(node_id)
        client.send(asked(api, VERSIONS[api], request_))
        broker = await rig.broker.peer()
        question = await broker.frame()
        assert type(read_request(question)).__name__ == "MetadataRequest"
        version = int.from_bytes(question[2:4], "big")
        answer = MetadataResponse(version=version, brokers=[], topics=[], authorized_operations=set())
        broker.answer(question, find_message_codec(ApiKey.METADATA, version).encode_response(answer))
        assert (await client.frame())[:4] == (1).to_bytes(4, "big")
        await client.ask(api, VERSIONS[api], request_)  # and from then on at once
        assert rig.broker.accepted == 1


@pytest.mark.parametrize(("node_id", "request_"), ASKED, ids=name_of)
async def test_a_client_that_a_broker_does_not_answer_hears_nothing(
    tmp_path: Path, node_id: int, request_: Any
) -> None:
    api = ApiKey(request_.API_KEY)
    async with housed(tmp_path, asks_for_login=True) as rig:
        client = await rig.client(node_id)
        client.send(asked(api, VERSIONS[api], request_))
        broker = await rig.broker.peer()
        await broker.frame()
        broker.abort()
        assert await client.ended()


@pytest.mark.parametrize(("node_id", "request_"), ASKED, ids=name_of)
async def test_where_nobody_logs_in_no_broker_is_asked(tmp_path: Path, node_id: int, request_: Any) -> None:
    api = ApiKey(request_.API_KEY)
    async with housed(tmp_path) as rig:
        client = await rig.client(node_id)
        await client.ask(api, VERSIONS[api], request_)
