# SPDX-License-Identifier: Apache-2.0
"""ApiVersions, at every version."""

from collections.abc import Callable
from typing import Any

import pytest

from coordinator.api import api_versions
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import ApiVersionsRequest
from protocol.message_codecs import find_message_codec
from tests.api.asking import CLUSTER_ID, FakeNode, versions
from tests.support.apis import SUPPORTED

KEY = ApiKey.API_VERSIONS
NODE_ID = 7


def request(name: str = "client", version: str = "1.0") -> ApiVersionsRequest:
    return ApiVersionsRequest(client_software_name=name, client_software_version=version)


@pytest.mark.parametrize("version", versions(KEY))
def test_every_served_version_is_told_in_the_order_of_the_keys(node: FakeNode, version: int) -> None:
    response = node.ask(KEY, version, request())
    assert response.error_code == 0
    assert [(each.api_key, each.min_version, each.max_version) for each in response.api_keys] == [
        (int(key), 0 if key is ApiKey.PRODUCE else SUPPORTED[key].min, SUPPORTED[key].max)
        for key in sorted(SUPPORTED)
    ]


@pytest.mark.parametrize("version", [3, 4, 5])
def test_no_feature_is_told_so_that_clients_stay_with_the_classic_protocol(
    node: FakeNode, version: int
) -> None:
    response = node.ask(KEY, version, request())
    assert not response.supported_features
    assert not response.finalized_features
    assert response.finalized_features_epoch == -1


@pytest.mark.parametrize("name", ["a", "A-b.c9", "9", "a..b"])
def test_good_client_names_are_taken(node: FakeNode, name: str) -> None:
    assert node.ask(KEY, 4, request(name=name, version=name)).error_code == 0


@pytest.mark.parametrize("version", [3, 4, 5])
@pytest.mark.parametrize("name", ["", "a_b", "a-", "-a", ".a", "a b", "ä", "a\n"])
def test_bad_client_names_are_an_invalid_request_with_no_versions(
    node: FakeNode, version: int, name: str
) -> None:
    for bad in (request(name=name), request(version=name)):
        response = node.ask(KEY, version, bad)
        assert response.error_code == ErrorCode.INVALID_REQUEST
        assert response.api_keys == []


@pytest.mark.parametrize("version", [0, 1, 2])
def test_early_versions_have_no_client_name_to_check(node: FakeNode, version: int) -> None:
    assert node.ask(KEY, version, request(name="")).error_code == 0


def test_unsupported_versions_are_answered_in_version_0_with_this_api_alone(node: FakeNode) -> None:
    refuse: Callable[..., Any] = api_versions.unsupported_version_response
    response = refuse(node)
    # the bytes that Kafka 4.4 sends after the correlation id
    assert (
        find_message_codec(KEY, 0).encode_response(response)
        == b"\x00\x23\x00\x00\x00\x01\x00\x12\x00\x00\x00\x05"
    )


@pytest.mark.parametrize(
    ("cluster_id", "node_id", "error"),
    [
        (None, -1, ErrorCode.NONE),
        (CLUSTER_ID, NODE_ID, ErrorCode.NONE),
        (CLUSTER_ID, NODE_ID + 1, ErrorCode.REBOOTSTRAP_REQUIRED),
        (CLUSTER_ID, -2, ErrorCode.REBOOTSTRAP_REQUIRED),
        ("another", NODE_ID, ErrorCode.REBOOTSTRAP_REQUIRED),
        ("", NODE_ID, ErrorCode.REBOOTSTRAP_REQUIRED),
        ("another", NODE_ID + 1, ErrorCode.REBOOTSTRAP_REQUIRED),
        (CLUSTER_ID, -1, ErrorCode.INVALID_REQUEST),
        ("", -1, ErrorCode.INVALID_REQUEST),
        (None, NODE_ID, ErrorCode.INVALID_REQUEST),
        (None, NODE_ID + 1, ErrorCode.INVALID_REQUEST),
    ],
)
def test_who_means_another_node_is_told_so(
    node: FakeNode, cluster_id: str | None, node_id: int, error: ErrorCode
) -> None:
    """As Kafka 4.4 answers each of these (tests/kafka/differential/scenarios/api_versions.py)."""
    response = node.ask(
        KEY,
        5,
        ApiVersionsRequest(
            client_software_name="client",
            client_software_version="1",
            cluster_id=cluster_id,
            node_id=node_id,
        ),
    )
    assert response.error_code == error
    assert bool(response.api_keys) is (error is ErrorCode.NONE)


def test_an_invalid_request_has_the_bytes_that_kafka_sends(node: FakeNode) -> None:
    response = api_versions.error_response(request(), ErrorCode.INVALID_REQUEST, 4)
    assert find_message_codec(KEY, 4).encode_response(response) == b"\x00\x2a\x01\x00\x00\x00\x00\x00"
