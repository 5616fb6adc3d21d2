# SPDX-License-Identifier: Apache-2.0
"""How much topics may be, as clients hear of it: each way to make more of them is refused, and nothing is made."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from coordinator.catalogue.catalogue_writer import STEPS_PER_SLICE
from coordinator.catalogue.steps import TOPICS_PER_STEP
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    MetadataRequest,
)
from tests.api.asking import Answers, FakeNode

LIMITED = {
    "max_topics": 3,
    "max_partitions": 10,
    "max_partitions_per_request": 6,
    "topic_config_value_max_bytes": 20,
    "topic_config_total_max_bytes": 60,
}
POLICY = ErrorCode.POLICY_VIOLATION


@pytest.fixture
def node(tmp_path: Path) -> FakeNode:
    """A node with small limits, and two topics of two partitions."""
    limited = FakeNode(tmp_path, num_partitions=2, **LIMITED)
    limited.have(a=2, b=2)
    return limited


def create(
    node: FakeNode, *wanted: tuple[str, int], validate_only: bool = False, **configs: str
) -> list[Any]:
    """Ask for topics; returns (error, message) of each."""
    settings = [
        CreateTopicsRequest.CreatableTopic.CreatableTopicConfig(name=name.replace("_", "."), value=value)
        for name, value in configs.items()
    ]
    topics = [
        CreateTopicsRequest.CreatableTopic(
            name=name, num_partitions=count, replication_factor=1, assignments=[], configs=settings
        )
        for name, count in wanted
    ]
    request = CreateTopicsRequest(topics=topics, timeout_ms=30_000, validate_only=validate_only)
    response = node.ask(ApiKey.CREATE_TOPICS, 7, request)
    return [(topic.error_code, topic.error_message) for topic in response.topics]


def metadata(node: FakeNode, *names: str) -> dict[str, int]:
    """Ask for topics, which are made where they are missing; returns the error of each."""
    topics = [MetadataRequest.MetadataRequestTopic(name=name) for name in names]
    response = node.ask(ApiKey.METADATA, 9, MetadataRequest(topics=topics, allow_auto_topic_creation=True))
    return {topic.name: topic.error_code for topic in response.topics}


@pytest.mark.parametrize("validate_only", [False, True])
def test_topics_beyond_the_limit_are_refused_one_by_one(node: FakeNode, validate_only: bool) -> None:
    (made, refused) = create(node, ("c", 1), ("d", 1), validate_only=validate_only)
    assert made == (0, None)
    assert refused == (POLICY, "There may be 3 topics, and there are 3 (max.topics).")
    assert node.names() == (["a", "b"] if validate_only else ["a", "b", "c"])
    assert node.catalogue.refusals["max.topics"] == 1


@pytest.mark.parametrize(
    ("partitions", "configs", "error", "setting"),
    [
        (7, {}, POLICY, "max.partitions.per.request"),
        (
            1,
            {"compression_type": "gzip" + 17 * " "},
            ErrorCode.INVALID_CONFIG,
            "topic.config.value.max.bytes",
        ),
        (
            1,
            {"compression_type": "gzip" + 15 * " ", "cleanup_policy": "compact" + 13 * " "},
            POLICY,
            "topic.config.total.max.bytes",
        ),
    ],
)
def test_each_refusal_names_its_setting(
    node: FakeNode, partitions: int, configs: Any, error: ErrorCode, setting: str
) -> None:
    ((code, message),) = create(node, ("c", partitions), **configs)
    assert code == error
    assert f"({setting})" in message
    assert node.names() == ["a", "b"]


def test_partitions_beyond_the_limit_are_refused(node: FakeNode) -> None:
    wanted = [CreatePartitionsRequest.CreatePartitionsTopic(name="a", count=8, assignments=None)]
    request = CreatePartitionsRequest(topics=wanted, timeout_ms=30_000, validate_only=False)
    assert create(node, ("c", 5)) == [(0, None)]
    (refused,) = node.ask(ApiKey.CREATE_PARTITIONS, 3, request).results
    assert (refused.error_code, "(max.partitions)" in refused.error_message) == (POLICY, True)
    assert node.catalogue.totals.partitions == 9


@pytest.mark.parametrize(("count", "error"), [(100_000, 0), (100_001, ErrorCode.INVALID_PARTITIONS)])
def test_no_topic_is_wider_than_librdkafka_can_read(tmp_path: Path, count: int, error: int) -> None:
    """It refuses the whole metadata otherwise: `list_topics` fails for every topic."""
    node = FakeNode(tmp_path, max_partitions=1_000_000, max_partitions_per_request=1_000_000)
    node.have(a=2)
    assert create(node, ("new", count))[0][0] == error
    wanted = [CreatePartitionsRequest.CreatePartitionsTopic(name="a", count=count, assignments=None)]
    request = CreatePartitionsRequest(topics=wanted, timeout_ms=30_000, validate_only=False)
    (grown,) = node.ask(ApiKey.CREATE_PARTITIONS, 3, request).results
    assert grown.error_code == error
    assert node.catalogue.totals.partitions == (2 if error else 2 * count)


def test_topics_that_metadata_would_create_are_refused_in_the_same_way(node: FakeNode) -> None:
    assert metadata(node, "a", "c", "d") == {"a": 0, "c": 0, "d": POLICY}
    assert node.names() == ["a", "b", "c"]
    assert metadata(node, "d") == {"d": POLICY}
    assert node.thread.waiting == []


@pytest.mark.parametrize("how", ["create", "validate", "metadata", "delete", "grow"])
def test_requests_for_many_topics_give_way_to_others(tmp_path: Path, how: str) -> None:
    node = FakeNode(tmp_path)
    names = [f"t{number:04}" for number in range(1_000)]
    if how in ("delete", "grow"):
        node.have(**dict.fromkeys(names, 1))
    turns: list[Callable[[], None]] = []
    node.catalogue_store.later = turns.append
    answers = Answers(*ASKED[how])
    node.start(answers, request_for(how, names))
    taken = 0
    while turns:
        assert (answers.bodies, node.thread.waiting) == ([], [])
        turns.pop()()
        taken += 1
    assert taken >= len(names) // TOPICS_PER_STEP // STEPS_PER_SLICE
    node.thread.run_all()
    while turns:  # what was kept is taken over
        turns.pop()()
    assert len(told(answers.only)) == len(names)
    assert set(told(answers.only)) == {0}
    assert node.names() == ([] if how in ("delete", "validate") else names)


ASKED: Final = {
    "create": (ApiKey.CREATE_TOPICS, 4),
    "validate": (ApiKey.CREATE_TOPICS, 4),
    "metadata": (ApiKey.METADATA, 8),
    "delete": (ApiKey.DELETE_TOPICS, 5),
    "grow": (ApiKey.CREATE_PARTITIONS, 3),
}


def request_for(how: str, names: list[str]) -> Any:
    """What asks for all of these topics."""
    match how:
        case "create" | "validate":
            topics = [
                CreateTopicsRequest.CreatableTopic(
                    name=name, num_partitions=1, replication_factor=1, assignments=[], configs=[]
                )
                for name in names
            ]
            return CreateTopicsRequest(topics=topics, timeout_ms=1, validate_only=how == "validate")
        case "metadata":
            wanted = [MetadataRequest.MetadataRequestTopic(name=name) for name in names]
            return MetadataRequest(topics=wanted, allow_auto_topic_creation=True)
        case "delete":
            return DeleteTopicsRequest(topic_names=names, timeout_ms=1)
        case _:
            grown = [
                CreatePartitionsRequest.CreatePartitionsTopic(name=name, count=2, assignments=None)
                for name in names
            ]
            return CreatePartitionsRequest(topics=grown, timeout_ms=1, validate_only=False)


def told(response: Any) -> list[int]:
    """The error of each topic in an answer."""
    if hasattr(response, "topics"):
        results = response.topics
    else:
        results = response.responses if hasattr(response, "responses") else response.results
    return [each.error_code for each in results]
