# SPDX-License-Identifier: Apache-2.0
"""The tables of keys, versions and errors, beside kafka-python's."""

from collections import Counter
from typing import Any

import pytest
from kafka import errors as their_errors
from kafka.protocol.api_key import ApiKey as TheirApiKey

from protocol.apis import PRIVATE_FROM, ApiKey
from protocol.codec import NEVER_FLEXIBLE
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import find_request_and_response_classes
from tests.support.apis import FIRST_FLEXIBLE, SUPPORTED

# kafka-python's name → Kafka's, where they differ
OTHER_NAMES = {
    "NO_ERROR": "NONE",
    "UNKNOWN": "UNKNOWN_SERVER_ERROR",
    "NOT_LEADER_FOR_PARTITION": "NOT_LEADER_OR_FOLLOWER",
    "MESSAGE_SIZE_TOO_LARGE": "MESSAGE_TOO_LARGE",
    "INVALID_TOPIC": "INVALID_TOPIC_EXCEPTION",
    "INVALID_REPLICATION_ASSIGNMENT": "INVALID_REPLICA_ASSIGNMENT",
}


UNSTABLE = {(ApiKey.INIT_PRODUCER_ID, 6): 5}
"""Versions that Kafka 4.4 has in its schemas and does not serve (latestVersionUnstable), and the one before each."""


NEWER = {"streamsgrouptopologydescriptionupdate": 93, "unregistercontroller": 94}
"""Kafka 4.4's, which kafka-python lacks."""


def test_api_keys_are_kafkas() -> None:
    ours = {api.name.replace("_", "").lower(): api.value for api in ApiKey if api < PRIVATE_FROM}

    assert ours == {api.name.lower(): api.value for api in TheirApiKey} | NEWER


@pytest.mark.parametrize("api", SUPPORTED, ids=lambda api: api.name)
def test_versions_are_those_of_the_schemas(api: ApiKey) -> None:
    for cls in find_request_and_response_classes(api):
        assert api == cls.API_KEY
        low, high = cls.valid_versions
        assert (low, UNSTABLE.get((api, high), high)) == SUPPORTED[api]
        flexible = [version for version in range(SUPPORTED[api].max + 1) if cls.flexible_version_q(version)]
        assert min(flexible, default=NEVER_FLEXIBLE) == FIRST_FLEXIBLE[api]


def test_error_codes_are_kafkas() -> None:
    classes: list[Any] = [value for value in vars(their_errors).values() if isinstance(value, type)]
    errors = [cls for cls in classes if issubclass(cls, their_errors.BrokerResponseError)]
    theirs = {error.errno: error.message for error in errors if error.errno is not None}

    assert len(theirs) > 90
    assert {code: OTHER_NAMES.get(name, name) for code, name in theirs.items()}.items() <= {
        code.value: code.name for code in ErrorCode
    }.items()


def test_error_codes_have_no_gap_and_no_repeat() -> None:
    assert Counter(code.value for code in ErrorCode) == Counter(range(-1, max(ErrorCode) + 1))
