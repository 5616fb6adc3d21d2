# SPDX-License-Identifier: Apache-2.0
"""FindCoordinator and DescribeCluster, at every version."""

from typing import Any

import pytest

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import DescribeClusterRequest, FindCoordinatorRequest
from tests.api.asking import CLUSTER_ID, ENDPOINT, FakeNode, error_response_of, versions

FIND = ApiKey.FIND_COORDINATOR
CLUSTER = ApiKey.DESCRIBE_CLUSTER
HERE = (7, *ENDPOINT)
NOWHERE = (-1, "", -1)


def find(version: int, *keys: str, key_type: int = 0) -> FindCoordinatorRequest:
    if version < 4:
        return FindCoordinatorRequest(key=keys[0], key_type=key_type)
    return FindCoordinatorRequest(coordinator_keys=list(keys), key_type=key_type)


def found(version: int, response: Any) -> list[tuple[int, tuple[int, str, int]]]:
    """(error, place) for each key, wherever the version has it."""
    answers = [response] if version < 4 else response.coordinators
    return [(each.error_code, (each.node_id, each.host, each.port)) for each in answers]


@pytest.mark.parametrize("version", versions(FIND))
def test_this_node_coordinates_every_group(node: FakeNode, version: int) -> None:
    for group in ("g", ""):
        response = node.ask(FIND, version, find(version, group))
        assert found(version, response) == [(0, HERE)]


@pytest.mark.parametrize("version", versions(FIND))
def test_the_message_of_success_is_as_odd_as_kafkas(node: FakeNode, version: int) -> None:
    response = node.ask(FIND, version, find(version, "g"))
    if version >= 4:
        assert response.coordinators[0].error_message == ""
    elif version >= 1:
        assert response.error_message == "NONE"


@pytest.mark.parametrize("version", [4, 5, 6])
def test_keys_are_answered_in_order_repeats_and_all(node: FakeNode, version: int) -> None:
    node.groups.put_elsewhere("far", ErrorCode.NOT_COORDINATOR)
    response = node.ask(FIND, version, find(version, "b", "far", "", "b"))
    assert [each.key for each in response.coordinators] == ["b", "far", "", "b"]
    unavailable = (ErrorCode.COORDINATOR_NOT_AVAILABLE, NOWHERE)
    assert found(version, response) == [(0, HERE), unavailable, (0, HERE), (0, HERE)]
    assert node.ask(FIND, version, find(version)).coordinators == []


@pytest.mark.parametrize("version", versions(FIND))
def test_a_group_of_a_partition_that_is_led_elsewhere_has_no_coordinator_yet(
    node: FakeNode, version: int
) -> None:
    node.groups.put_elsewhere("g", ErrorCode.NOT_COORDINATOR)
    response = node.ask(FIND, version, find(version, "g"))
    assert found(version, response) == [(ErrorCode.COORDINATOR_NOT_AVAILABLE, NOWHERE)]


@pytest.mark.parametrize("version", versions(FIND))
def test_a_group_that_is_being_loaded_is_coordinated_here(node: FakeNode, version: int) -> None:
    node.groups.put_elsewhere("g", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    assert found(version, node.ask(FIND, version, find(version, "g"))) == [(0, HERE)]


@pytest.mark.parametrize("version", [v for v in versions(FIND) if v >= 1])
@pytest.mark.parametrize("key_type", [1, 2, 3, -1])
def test_other_kinds_of_keys_are_an_invalid_request(node: FakeNode, version: int, key_type: int) -> None:
    response = node.ask(FIND, version, find(version, "k", key_type=key_type))
    assert found(version, response) == [(ErrorCode.INVALID_REQUEST, NOWHERE)]


@pytest.mark.parametrize("version", versions(FIND))
def test_a_refused_search_has_the_error_for_every_key(version: int) -> None:
    error = ErrorCode.UNKNOWN_SERVER_ERROR
    response = error_response_of(FIND, version, find(version, "a", "b"), error)
    assert found(version, response) == [(error, NOWHERE)] * (2 if version >= 4 else 1)


# --- DescribeCluster


def describe(endpoint_type: int = 1, *, operations: bool = False) -> DescribeClusterRequest:
    return DescribeClusterRequest(
        include_cluster_authorized_operations=operations, endpoint_type=endpoint_type
    )


@pytest.mark.parametrize("version", versions(CLUSTER))
def test_the_cluster_is_this_node(node: FakeNode, version: int) -> None:
    response = node.ask(CLUSTER, version, describe())
    assert (response.error_code, response.error_message) == (0, None)
    assert (response.cluster_id, response.controller_id) == (CLUSTER_ID, 7)
    brokers = [(each.broker_id, each.host, each.port, each.rack, each.is_fenced) for each in response.brokers]
    assert brokers == [(*HERE, None, False)]
    assert response.endpoint_type == 1
    assert response.authorized_operations is None


@pytest.mark.parametrize("version", versions(CLUSTER))
def test_operations_on_the_cluster_are_told_when_asked_for(node: FakeNode, version: int) -> None:
    response = node.ask(CLUSTER, version, describe(operations=True))
    assert response.authorized_operations == {5, 7, 8, 9, 10, 11, 12}


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    ("endpoint_type", "error"),
    [
        (2, ErrorCode.MISMATCHED_ENDPOINT_TYPE),
        (0, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
        (3, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
    ],
)
def test_only_brokers_are_found_here(
    node: FakeNode, version: int, endpoint_type: int, error: ErrorCode
) -> None:
    response = node.ask(CLUSTER, version, describe(endpoint_type))
    assert response.error_code == error
    assert response.error_message
    assert (response.cluster_id, response.controller_id, response.brokers) == ("", -1, [])


@pytest.mark.parametrize("version", versions(CLUSTER))
def test_a_refused_description_is_empty(version: int) -> None:
    response = error_response_of(CLUSTER, version, describe(), ErrorCode.UNKNOWN_SERVER_ERROR)
    assert (response.error_code, response.brokers) == (ErrorCode.UNKNOWN_SERVER_ERROR, [])
