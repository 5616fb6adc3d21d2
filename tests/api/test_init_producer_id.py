# SPDX-License-Identifier: Apache-2.0
"""InitProducerId, at every version: an id for producers without transactions."""

import pytest

from coordinator.host_resources import HostResources
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import InitProducerIdRequest, InitProducerIdResponse
from storage.disk.filesystem import RealFileSystem
from tests.api.asking import FakeNode, error_response_of, versions
from tests.groups.harness import FakeClock

KEY = ApiKey.INIT_PRODUCER_ID
EVERY_VERSION = pytest.mark.parametrize("version", versions(KEY))
FROM_3 = pytest.mark.parametrize("version", [v for v in versions(KEY) if v >= 3])


def request(
    transactional_id: str | None = None, producer_id: int = -1, producer_epoch: int = -1
) -> InitProducerIdRequest:
    return InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=60_000,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )


def told(response: InitProducerIdResponse) -> tuple[int, int, int]:
    return response.error_code, response.producer_id, response.producer_epoch


@EVERY_VERSION
def test_each_producer_gets_an_id_of_its_own(node: FakeNode, version: int) -> None:
    first, second = (told(node.ask(KEY, version, request())) for _ in range(2))
    assert (first[0], first[2]) == (second[0], second[2]) == (ErrorCode.NONE, 0)
    assert first[1] != second[1]


@FROM_3
def test_whoever_has_an_id_gets_another_one(node: FakeNode, version: int) -> None:
    error, producer_id, epoch = told(node.ask(KEY, version, request(None, 7, 3)))
    assert (error, epoch) == (ErrorCode.NONE, 0)
    assert producer_id not in (7, -1)


@FROM_3
@pytest.mark.parametrize(("producer_id", "epoch"), [(7, -1), (-1, 3)])
def test_half_an_id_is_refused(node: FakeNode, version: int, producer_id: int, epoch: int) -> None:
    assert told(node.ask(KEY, version, request(None, producer_id, epoch))) == (
        ErrorCode.INVALID_REQUEST,
        -1,
        -1,
    )


@EVERY_VERSION
@pytest.mark.parametrize("transactional_id", ["", "payments"])
def test_transactions_are_refused(node: FakeNode, version: int, transactional_id: str) -> None:
    assert told(node.ask(KEY, version, request(transactional_id))) == (ErrorCode.INVALID_REQUEST, -1, -1)


@EVERY_VERSION
def test_an_error_has_no_id(version: int) -> None:
    response = error_response_of(KEY, version, request(), ErrorCode.UNKNOWN_SERVER_ERROR)
    assert told(response) == (ErrorCode.UNKNOWN_SERVER_ERROR, -1, -1)


@pytest.mark.parametrize(("drawn", "producer_id"), [(b"\0" * 8, 0), (b"\xff" * 8, 2**63 - 1)])
def test_a_machine_gives_ids_that_kafka_allows(drawn: bytes, producer_id: int) -> None:
    machine = HostResources(RealFileSystem(), FakeClock(), random_bytes=lambda count: drawn[:count])
    assert machine.new_random_producer_id() == producer_id
