# SPDX-License-Identifier: Apache-2.0
"""The same requests about topics to a real Kafka and to our handlers: the answers must not differ.

Left out of the comparison: ids, texts (only whether there is one), the order where Kafka's is that of a hash table,
and what the heads of the api modules list as differences.
"""

import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from coordinator.topology.view import Broker, ClusterTopology, View
from protocol.apis import ApiKey
from protocol.kafka_python_messages import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    FetchRequest,
    FindCoordinatorRequest,
    ListOffsetsRequest,
    MetadataRequest,
)
from tests.api.asking import FakeNode, versions
from tests.kafka.broker import KafkaBroker
from tests.support.raw import RawConnection, create_topic, wait_for_coordinator

pytestmark = pytest.mark.kafka

STRANGER = uuid.UUID(int=9 << 64)
TOPIC, BROKER = 2, 4


class Peers:
    """A broker and a node of ours that have the same topics, and look the same from outside."""

    def __init__(self, broker: KafkaBroker, data_dir: Path) -> None:
        wait_for_coordinator(broker.bootstrap, "g")  # so that __consumer_offsets exists
        self.kafka = RawConnection(broker.bootstrap)
        self.ours = FakeNode(data_dir)
        self.ours.node_id = 1
        self.ours.cluster = ClusterTopology(View((Broker(self.ours.node_id, "127.0.0.1", broker.port),), ()))
        for name, partitions in (("orders", 3), ("my_topic", 1)):
            create_topic(broker.bootstrap, name, partitions)
            self.ours.have(**{name: partitions})
        described = self.kafka.call(MetadataRequest(topics=None), 12)
        self.ours.cluster_id = described.cluster_id
        self.kafka_ids = {topic.name: topic.topic_id for topic in described.topics}
        self.our_ids = {topic.name: topic.uuid for topic in self.ours.catalogue}

    def compare(self, key: ApiKey, version: int, request: Callable[[Mapping[str, uuid.UUID]], Any]) -> Any:
        """Ask both, each with its own ids of the topics; returns what they agree on."""
        theirs = shown(self.kafka.call(request(self.kafka_ids), version), self.kafka_ids)
        ours = shown(self.ours.ask(key, version, request(self.our_ids)), self.our_ids)
        assert ours == theirs
        return ours


def always(request: Any) -> Callable[[Mapping[str, uuid.UUID]], Any]:
    """A request that holds no ids."""
    return lambda _ids: request


def shown(response: Any, ids: Mapping[str, uuid.UUID]) -> Any:
    """A response as data that can be compared."""
    names = {topic_id: name for name, topic_id in ids.items()}

    def tidy(field: str, value: Any) -> Any:
        if field == "topic_id":
            return names.get(value, "another id")
        if field in ("error_message", "documentation"):
            return bool(value)
        if field == "aborted_transactions":
            return value or []  # Kafka has null or nothing, as it happens
        if hasattr(value, "to_dict"):
            return {name: tidy(name, getattr(value, name)) for name in value.fields if name != "session_id"}
        if isinstance(value, list):
            return sorted((tidy("", each) for each in value), key=repr)
        return value

    return tidy("", response)


@pytest.fixture(scope="module")
def peers(kafka_broker: KafkaBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peers]:
    pair = Peers(kafka_broker, tmp_path_factory.mktemp("ours"))
    yield pair
    pair.kafka.close()


def every_version(key: ApiKey) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("version", versions(key))


# --- CreateTopics


def new_topic(name: str, partitions: int = 1, factor: int = 1, **more: Any) -> Any:
    kind = CreateTopicsRequest.CreatableTopic
    assignments = [
        kind.CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
        for index, brokers in more.get("assignments", ())
    ]
    configs = [kind.CreatableTopicConfig(name=k, value=v) for k, v in more.get("configs", {}).items()]
    return kind(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        assignments=assignments,
        configs=configs,
    )


NEW_TOPICS = [
    new_topic("new", 3),
    new_topic("new", -1, -1),
    new_topic("new", -1, -1, assignments=[(1, [1]), (0, [1])]),
    new_topic("new", configs={"retention.ms": " 5 ", "compression.type": "lz4"}),
    new_topic("..."),
    new_topic("x" * 249),
    new_topic("x" * 250),
    new_topic(""),
    new_topic("."),
    new_topic("a b"),
    new_topic("ä"),
    new_topic("orders"),
    new_topic("my.topic"),
    new_topic("__consumer_offsets"),
    new_topic("__consumer.offsets"),
    new_topic("__cluster_metadata"),
    new_topic("new", 0),
    new_topic("new", -2),
    new_topic("new", 1, 0),
    new_topic("new", 0, 0),
    new_topic("new", 1, -2),
    new_topic("new", 1, 2),
    new_topic("new", 0, 2),
    new_topic("new", 10_001),
    new_topic("new", 2**31 - 1),
    new_topic("new", 2, -1, assignments=[(0, [1])]),
    new_topic("new", -1, 1, assignments=[(0, [1])]),
    new_topic("new", -1, -1, assignments=[(0, [1]), (0, [1])]),
    new_topic("new", -1, -1, assignments=[(0, [1]), (2, [1])]),
    new_topic("new", -1, -1, assignments=[(0, [])]),
    new_topic("new", -1, -1, assignments=[(0, [1, 1])]),
    new_topic("new", -1, -1, assignments=[(0, [2])]),
    new_topic("new", configs={"foo": "1"}),
    new_topic("new", configs={"retention.ms": None}),
    new_topic("new", 0, configs={"retention.ms": "x"}),
    new_topic("a b", configs={"retention.ms": "x"}),
    new_topic("new", configs={"min.compaction.lag.ms": "9", "max.compaction.lag.ms": "5"}),
    new_topic("new", configs={"remote.storage.enable": "true"}),
]


@every_version(ApiKey.CREATE_TOPICS)
def test_creating_topics(peers: Peers, version: int) -> None:
    for wanted in [[], *([topic] for topic in NEW_TOPICS), [new_topic("d"), new_topic("d"), new_topic("e")]]:
        request = CreateTopicsRequest(topics=wanted, timeout_ms=10_000, validate_only=True)

        def forget_ids_and_brokers_defaults(answer: Any) -> Any:
            for topic in answer["topics"]:
                topic["topic_id"] = None  # validation invents one
                for config in topic["configs"] or ():
                    if config["name"] == "min.insync.replicas":  # Kafka 4.4 sets it for the whole cluster
                        config["config_source"] = 5
            return answer

        theirs = shown(peers.kafka.call(request, version), {})
        ours = shown(peers.ours.ask(ApiKey.CREATE_TOPICS, version, request), {})
        assert forget_ids_and_brokers_defaults(ours) == forget_ids_and_brokers_defaults(theirs), wanted


# --- CreatePartitions, DeleteTopics: what is refused


@every_version(ApiKey.CREATE_PARTITIONS)
def test_creating_partitions(peers: Peers, version: int) -> None:
    kind: Any = CreatePartitionsRequest.CreatePartitionsTopic

    def more(name: str, count: int, assignments: list[list[int]] | None = None) -> Any:
        rows = assignments and [kind.CreatePartitionsAssignment(broker_ids=ids) for ids in assignments]
        return kind(name=name, count=count, assignments=rows)

    for wanted in (
        [more("orders", 4), more("my_topic", 2, [[1]])],
        [more("orders", 3), more("my_topic", 0), more("nope", 2), more("a b", 2)],
        [more("orders", 4, []), more("my_topic", -1)],
        [more("orders", 4, [[1], [1]]), more("my_topic", 2, [[2]])],
        [more("orders", 3, [[1]]), more("my_topic", 2, [[]])],
        [more("orders", 4), more("orders", 5), more("my_topic", 2, [[1, 1]])],
    ):
        request = CreatePartitionsRequest(topics=wanted, timeout_ms=10_000, validate_only=True)
        peers.compare(ApiKey.CREATE_PARTITIONS, version, always(request))


@every_version(ApiKey.DELETE_TOPICS)
def test_deleting_topics_that_cannot_be(peers: Peers, version: int) -> None:
    def request(ids: Mapping[str, uuid.UUID]) -> Any:
        if version < 6:
            names = ["nope", "", "orders", "orders", "a b", "twice", "twice", "twice"]
            return DeleteTopicsRequest(topic_names=names, timeout_ms=10_000)
        kind: Any = DeleteTopicsRequest.DeleteTopicState
        wanted = [
            ("nope", None),
            (None, STRANGER),
            (None, None),
            ("orders", ids["orders"]),
            (None, ids["my_topic"]),
            ("my_topic", None),
            ("twice", None),
            ("twice", None),
        ]
        topics = [kind(name=name, topic_id=topic_id) for name, topic_id in wanted]
        return DeleteTopicsRequest(topics=topics, timeout_ms=10_000)

    peers.compare(ApiKey.DELETE_TOPICS, version, request)


# --- asking


@every_version(ApiKey.METADATA)
def test_metadata(peers: Peers, version: int) -> None:
    names = ["orders", "__consumer_offsets", "my_topic", "orders"]
    if version >= 4:
        names += ["nope", "a b", "", "my.topic"]

    def by_name(_ids: object) -> Any:
        topics = [MetadataRequest.MetadataRequestTopic(name=name) for name in names]
        return MetadataRequest(
            topics=topics,
            allow_auto_topic_creation=False,
            include_cluster_authorized_operations=True,
            include_topic_authorized_operations=True,
        )

    def by_id(ids: Mapping[str, uuid.UUID]) -> Any:
        wanted = (ids["orders"], STRANGER, ids["my_topic"])
        topics = [MetadataRequest.MetadataRequestTopic(name=None, topic_id=topic_id) for topic_id in wanted]
        return MetadataRequest(topics=topics, allow_auto_topic_creation=False)

    peers.compare(ApiKey.METADATA, version, by_name)
    if version >= 1:
        peers.compare(ApiKey.METADATA, version, always(MetadataRequest(topics=[])))
    if version in (10, 11):
        topic = MetadataRequest.MetadataRequestTopic(name="orders", topic_id=STRANGER)
        peers.compare(ApiKey.METADATA, version, always(MetadataRequest(topics=[topic])))
    if version >= 12:
        peers.compare(ApiKey.METADATA, version, by_id)


@every_version(ApiKey.FIND_COORDINATOR)
def test_finding_coordinators(peers: Peers, version: int) -> None:
    def request(key_type: int) -> Any:
        if version < 4:
            return FindCoordinatorRequest(key="g", key_type=key_type)
        return FindCoordinatorRequest(coordinator_keys=["g", "", "g"], key_type=key_type)

    groups = request(0)
    answer = peers.compare(ApiKey.FIND_COORDINATOR, version, always(groups))
    assert answer["error_code"] == 0
    for key_type in (9, -1) if version >= 1 else ():
        asked = request(key_type)
        peers.compare(ApiKey.FIND_COORDINATOR, version, always(asked))
    if 1 <= version < 6:
        theirs = shown(peers.kafka.call(request(2), version), {})
        ours = shown(peers.ours.ask(ApiKey.FIND_COORDINATOR, version, request(2)), {})
        ours["error_message"] = theirs["error_message"]  # below v4 Kafka has a standard text, we have none
        assert ours == theirs


@every_version(ApiKey.DESCRIBE_CLUSTER)
def test_describing_the_cluster(peers: Peers, version: int) -> None:
    for endpoint_type in (1,) if version < 1 else (0, 1, 2, 3):
        for operations in (False, True):
            request = DescribeClusterRequest(
                endpoint_type=endpoint_type, include_cluster_authorized_operations=operations
            )
            peers.compare(ApiKey.DESCRIBE_CLUSTER, version, always(request))


@every_version(ApiKey.LIST_OFFSETS)
def test_listing_offsets(peers: Peers, version: int) -> None:
    kind = ListOffsetsRequest.ListOffsetsTopic

    def request(name: str, *partitions: tuple[int, int, int]) -> Any:
        rows = [
            kind.ListOffsetsPartition(partition_index=index, timestamp=timestamp, current_leader_epoch=epoch)
            for index, timestamp, epoch in partitions
        ]
        topics = [kind(name=name, partitions=rows)]
        return ListOffsetsRequest(replica_id=-1, isolation_level=0, topics=topics, timeout_ms=1_000)

    for place in range(-7, 2):
        asked = request("orders", (0, place, -1 if place == -2 else 0), (2, place, 0))
        peers.compare(ApiKey.LIST_OFFSETS, version, always(asked))
    for asked in (
        request("orders", (0, -1, 0), (1, -1, 0), (0, -2, 0), (3, -1, 0)),
        request("nope", (0, -1, -1)),
    ):
        peers.compare(ApiKey.LIST_OFFSETS, version, always(asked))
    if version >= 4:
        asked = request("orders", (0, -1, 5), (1, -1, -2), (2, -1, 0))
        peers.compare(ApiKey.LIST_OFFSETS, version, always(asked))


@every_version(ApiKey.FETCH)
def test_fetching(peers: Peers, version: int) -> None:
    kind = FetchRequest.FetchTopic

    def request(
        *partitions: tuple[int, int, int],
        name: str = "orders",
        topic_id: uuid.UUID | None = None,
        **more: int,
    ) -> Callable[[Mapping[str, uuid.UUID]], Any]:
        def made(ids: Mapping[str, uuid.UUID]) -> Any:
            rows = [
                kind.FetchPartition(
                    partition=index,
                    fetch_offset=offset,
                    current_leader_epoch=epoch,
                    log_start_offset=-1,
                    partition_max_bytes=1_000,
                )
                for index, offset, epoch in partitions
            ]
            topics = [kind(topic=name, topic_id=topic_id or ids["orders"], partitions=rows)] if rows else []
            fields: dict[str, Any] = {
                "session_id": 0,
                "session_epoch": -1,
                "max_wait_ms": 0,
                "min_bytes": 1,
                **more,
            }
            return FetchRequest(
                **fields, replica_id=-1, max_bytes=1_000, topics=topics, forgotten_topics_data=[], rack_id=""
            )

        return made

    peers.compare(ApiKey.FETCH, version, request((0, 0, -1), (1, 0, -1)))
    peers.compare(ApiKey.FETCH, version, request((0, 0, -1), max_wait_ms=5_000, min_bytes=0))
    peers.compare(ApiKey.FETCH, version, request(max_wait_ms=5_000))
    peers.compare(ApiKey.FETCH, version, request((0, -1, -1)))
    if version >= 7:
        peers.compare(ApiKey.FETCH, version, request((0, 0, -1), session_epoch=0))
        peers.compare(ApiKey.FETCH, version, request((0, 0, -1), session_id=7, session_epoch=3))
    if version >= 9:
        peers.compare(ApiKey.FETCH, version, request((0, 0, 5), (1, 0, -2), (2, 0, 0)))
    if version < 13:
        peers.compare(ApiKey.FETCH, version, request((0, 0, -1), name="nope"))
    else:
        peers.compare(ApiKey.FETCH, version, request((0, 0, -1), topic_id=STRANGER))


@every_version(ApiKey.DESCRIBE_CONFIGS)
def test_describing_configs(peers: Peers, version: int) -> None:
    def request(kind: int, name: str, keys: list[str] | None = None) -> Any:
        resource = DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=kind, resource_name=name, configuration_keys=keys
        )
        return DescribeConfigsRequest(resources=[resource], include_synonyms=True, include_documentation=True)

    topic = request(TOPIC, "orders")
    theirs = shown(peers.kafka.call(topic, version), {})
    ours = shown(peers.ours.ask(ApiKey.DESCRIBE_CONFIGS, version, topic), {})
    for answer in (ours, theirs):
        configs = answer["results"][0]["configs"]
        configs[:] = [config for config in configs if config["name"] != "min.insync.replicas"]
    assert ours == theirs
    for asked in (
        request(TOPIC, "orders", ["segment.ms", "nope"]),
        request(TOPIC, "nope"),
        request(TOPIC, "a b"),
        request(BROKER, "1", ["group.min.session.timeout.ms", "socket.request.max.bytes", "num.partitions"]),
        request(BROKER, "2"),
        request(BROKER, "x"),
    ):
        peers.compare(ApiKey.DESCRIBE_CONFIGS, version, always(asked))
    for kind in (0, 1, 3, 64):
        peers.compare(ApiKey.DESCRIBE_CONFIGS, version, always(request(kind, "g")))
