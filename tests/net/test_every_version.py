# SPDX-License-Identifier: Apache-2.0
"""What ApiVersions names is served in every version that it names: over a socket, with kafka-python's codec."""

from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import pytest

from protocol.apis import ApiKey
from protocol.consumer_group_messages import ConsumerGroupHeartbeatRequest
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import (
    ApiVersionsRequest,
    DescribeConfigsRequest,
    find_request_and_response_classes,
)
from tests.support.raw import RawConnection, commit_offsets, create_topic
from tests.support.service import Service, serving

TOPIC = "orders"
WIDE, WIDE_PARTITIONS = "wide", 20
GROUP = "every-version"
NOT_SERVED_BUT_TOLD = {(ApiKey.PRODUCE, version) for version in range(3)}
"""As in Kafka, for the sake of librdkafka (coordinator/api/produce.py)."""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    settings: dict[str, str | int] = {
        "group.initial.rebalance.delay.ms": 0,
        "offsets.topic.num.partitions": 5,
        "auto.create.topics.enable": "false",
        "log.flush": "os",
    }
    with serving(tmp_path_factory.mktemp("every-version"), settings) as service:
        create_topic(service.bootstrap, TOPIC, 4)
        create_topic(service.bootstrap, WIDE, WIDE_PARTITIONS)
        yield service
        assert "Traceback" not in service.log_text()


class Asking:
    """One version of one api, and what its request needs to know."""

    def __init__(self, service: Service, api: ApiKey, version: int, topic_id: UUID) -> None:
        self.service = service
        self.api = api
        self.version = version
        self.topic_id = topic_id
        self.cls = find_request_and_response_classes(api)[0]
        self.name = f"{api.name.lower()}-{version}"

    def topic(self, name: str = "name", *, ids_from: int) -> dict[str, Any]:
        """A topic by its name, or by its id where that is how."""
        if self.version >= ids_from:
            return {"topic_id": self.topic_id}
        return {name: TOPIC}


Build = Callable[[Asking], Any]


def joined(asking: Asking) -> tuple[str, int]:
    """Become the member of a new group; returns member id and generation."""
    request = find_request_and_response_classes(ApiKey.JOIN_GROUP)[0]
    protocol = request.JoinGroupRequestProtocol(name="range", metadata=b"")
    with RawConnection(asking.service.bootstrap) as connection:
        answer = connection.call(
            request(
                group_id=asking.name,
                session_timeout_ms=30_000,
                rebalance_timeout_ms=30_000,
                member_id="",
                protocol_type="consumer",
                protocols=[protocol],
            ),
            3,
        )
    assert answer.error_code == ErrorCode.NONE
    return answer.member_id, answer.generation_id


def fetch(asking: Asking) -> Any:
    cls = asking.cls
    partition = cls.FetchTopic.FetchPartition(
        partition=0, fetch_offset=0, partition_max_bytes=1, log_start_offset=-1
    )
    topic = cls.FetchTopic(**asking.topic("topic", ids_from=13), partitions=[partition])
    return cls(
        max_wait_ms=10, min_bytes=1, max_bytes=1, topics=[topic], forgotten_topics_data=[], session_epoch=-1
    )


def list_offsets(asking: Asking) -> Any:
    topic = asking.cls.ListOffsetsTopic
    partition = topic.ListOffsetsPartition(partition_index=0, current_leader_epoch=0, timestamp=-1)
    return asking.cls(replica_id=-1, topics=[topic(name=TOPIC, partitions=[partition])], timeout_ms=1_000)


def metadata(asking: Asking) -> Any:
    topic = asking.cls.MetadataRequestTopic
    return asking.cls(topics=[topic(name=TOPIC)], allow_auto_topic_creation=False)


def offset_commit(asking: Asking) -> Any:
    topic = asking.cls.OffsetCommitRequestTopic
    partition = topic.OffsetCommitRequestPartition(
        partition_index=1, committed_offset=asking.version, committed_metadata="m"
    )
    return asking.cls(
        group_id=GROUP,
        generation_id_or_member_epoch=-1,
        member_id="",
        retention_time_ms=-1,
        topics=[topic(**asking.topic(ids_from=10), partitions=[partition])],
    )


def offset_fetch(asking: Asking) -> Any:
    cls = asking.cls
    if asking.version < 8:
        topic = cls.OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[0, 1])
        return cls(group_id=GROUP, topics=[topic])
    group = cls.OffsetFetchRequestGroup
    topics = [group.OffsetFetchRequestTopics(**asking.topic(ids_from=10), partition_indexes=[0, 1])]
    return cls(groups=[group(group_id=GROUP, topics=topics)])


def find_coordinator(asking: Asking) -> Any:
    if asking.version < 4:
        return asking.cls(key=GROUP, key_type=0)
    return asking.cls(key_type=0, coordinator_keys=[GROUP, "another"])


def join_group(asking: Asking) -> Any:
    protocol = asking.cls.JoinGroupRequestProtocol(name="range", metadata=b"")
    return asking.cls(
        group_id=asking.name,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        member_id="",
        protocol_type="consumer",
        protocols=[protocol],
    )


def heartbeat(asking: Asking) -> Any:
    member_id, generation = joined(asking)
    return asking.cls(group_id=asking.name, generation_id=generation, member_id=member_id)


def consumer_group_heartbeat(asking: Asking) -> Any:
    return ConsumerGroupHeartbeatRequest(group_id=asking.name, member_id="m", member_epoch=0)


def leave_group(asking: Asking) -> Any:
    member_id, _ = joined(asking)
    if asking.version < 3:
        return asking.cls(group_id=asking.name, member_id=member_id)
    return asking.cls(group_id=asking.name, members=[asking.cls.MemberIdentity(member_id=member_id)])


def sync_group(asking: Asking) -> Any:
    member_id, generation = joined(asking)
    part = asking.cls.SyncGroupRequestAssignment(member_id=member_id, assignment=b"part")
    return asking.cls(
        group_id=asking.name,
        generation_id=generation,
        member_id=member_id,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[part],
    )


def describe_groups(asking: Asking) -> Any:
    return asking.cls(groups=[GROUP], include_authorized_operations=True)


def list_groups(asking: Asking) -> Any:
    return asking.cls(states_filter=["Empty"], types_filter=["classic"])


def api_versions(asking: Asking) -> Any:
    return asking.cls(client_software_name="test", client_software_version="1.0")


def create_topics(asking: Asking) -> Any:
    topic = asking.cls.CreatableTopic
    wanted = topic(name=asking.name, num_partitions=3, replication_factor=1, assignments=[], configs=[])
    return asking.cls(topics=[wanted], timeout_ms=10_000, validate_only=False)


def delete_topics(asking: Asking) -> Any:
    create_topic(asking.service.bootstrap, asking.name, 1)
    if asking.version < 6:
        return asking.cls(topic_names=[asking.name], timeout_ms=10_000)
    return asking.cls(topics=[asking.cls.DeleteTopicState(name=asking.name)], timeout_ms=10_000)


def describe_configs(asking: Asking) -> Any:
    resource = DescribeConfigsRequest.DescribeConfigsResource
    resources = [
        resource(resource_type=2, resource_name=TOPIC, configuration_keys=None),
        resource(resource_type=4, resource_name="1", configuration_keys=None),
    ]
    return asking.cls(resources=resources, include_synonyms=True, include_documentation=True)


def create_partitions(asking: Asking) -> Any:
    create_topic(asking.service.bootstrap, asking.name, 1)
    topic = asking.cls.CreatePartitionsTopic(name=asking.name, count=2, assignments=None)
    return asking.cls(topics=[topic], timeout_ms=10_000, validate_only=False)


def delete_groups(asking: Asking) -> Any:
    commit_offsets(asking.service.bootstrap, asking.name, TOPIC, {0: 1})
    return asking.cls(groups_names=[asking.name])


def offset_delete(asking: Asking) -> Any:
    commit_offsets(asking.service.bootstrap, asking.name, TOPIC, {0: 1})
    topic = asking.cls.OffsetDeleteRequestTopic
    partition = topic.OffsetDeleteRequestPartition(partition_index=0)
    return asking.cls(group_id=asking.name, topics=[topic(name=TOPIC, partitions=[partition])])


def describe_cluster(asking: Asking) -> Any:
    return asking.cls(include_cluster_authorized_operations=True, endpoint_type=1)


def produce(asking: Asking) -> Any:
    topic = asking.cls.TopicProduceData
    partition = topic.PartitionProduceData(index=0, records=b"")
    return asking.cls(
        transactional_id=None,
        acks=1,
        timeout_ms=1_000,
        topic_data=[topic(**asking.topic(ids_from=13), partition_data=[partition])],
    )


def init_producer_id(asking: Asking) -> Any:
    return asking.cls(transactional_id=None, transaction_timeout_ms=60_000, producer_id=-1, producer_epoch=-1)


def incremental_alter_configs(asking: Asking) -> Any:
    resource = asking.cls.AlterConfigsResource
    config = resource.AlterableConfig(name="retention.ms", config_operation=0, value="5")
    return asking.cls(resources=[resource(resource_type=2, resource_name=TOPIC, configs=[config])])


BUILDERS: dict[ApiKey, Build] = {
    ApiKey.FETCH: fetch,
    ApiKey.LIST_OFFSETS: list_offsets,
    ApiKey.METADATA: metadata,
    ApiKey.OFFSET_COMMIT: offset_commit,
    ApiKey.OFFSET_FETCH: offset_fetch,
    ApiKey.FIND_COORDINATOR: find_coordinator,
    ApiKey.JOIN_GROUP: join_group,
    ApiKey.HEARTBEAT: heartbeat,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: consumer_group_heartbeat,
    ApiKey.LEAVE_GROUP: leave_group,
    ApiKey.SYNC_GROUP: sync_group,
    ApiKey.DESCRIBE_GROUPS: describe_groups,
    ApiKey.LIST_GROUPS: list_groups,
    ApiKey.API_VERSIONS: api_versions,
    ApiKey.CREATE_TOPICS: create_topics,
    ApiKey.DELETE_TOPICS: delete_topics,
    ApiKey.DESCRIBE_CONFIGS: describe_configs,
    ApiKey.CREATE_PARTITIONS: create_partitions,
    ApiKey.DELETE_GROUPS: delete_groups,
    ApiKey.OFFSET_DELETE: offset_delete,
    ApiKey.DESCRIBE_CLUSTER: describe_cluster,
    ApiKey.PRODUCE: produce,
    ApiKey.INIT_PRODUCER_ID: init_producer_id,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: incremental_alter_configs,
}


def expected_errors(api: ApiKey, version: int) -> set[int]:
    """Which error codes a response may hold."""
    if api is ApiKey.JOIN_GROUP and version >= 4:
        return {ErrorCode.MEMBER_ID_REQUIRED}  # KIP-394: the first join is only given an id
    if api is ApiKey.PRODUCE:
        return {ErrorCode.POLICY_VIOLATION}
    if api is ApiKey.CONSUMER_GROUP_HEARTBEAT:
        return {ErrorCode.UNSUPPORTED_VERSION}
    return {ErrorCode.NONE}


def errors_in(value: Any) -> Iterator[int]:
    """Every error code in a decoded message."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name.endswith("error_code"):
                yield inner
            else:
                yield from errors_in(inner)
    elif isinstance(value, list):
        for item in value:
            yield from errors_in(item)


def advertised(service: Service) -> dict[ApiKey, range]:
    with RawConnection(service.bootstrap) as connection:
        request = ApiVersionsRequest(client_software_name="test", client_software_version="1.0")
        answer = connection.call(request, 4)
    assert answer.error_code == ErrorCode.NONE
    return {ApiKey(key.api_key): range(key.min_version, key.max_version + 1) for key in answer.api_keys}


def test_there_is_a_request_for_every_api_that_is_told_of(service: Service) -> None:
    assert set(advertised(service)) == set(BUILDERS)


@pytest.mark.parametrize("api", BUILDERS, ids=lambda api: api.name)
def test_every_version_is_served(service: Service, api: ApiKey) -> None:
    versions = advertised(service)[api]
    commit_offsets(service.bootstrap, GROUP, TOPIC, {0: 1, 1: 1})
    topic_id = id_of_topic(service)
    for version in versions:
        if (api, version) in NOT_SERVED_BUT_TOLD:
            continue
        request = BUILDERS[api](Asking(service, api, version, topic_id))
        with RawConnection(service.bootstrap) as connection:
            answer = connection.call(request, version)
            assert set(errors_in(answer.to_dict())) == expected_errors(api, version), f"v{version}: {answer}"
            assert connection.call(ApiVersionsRequest(), 0).error_code == ErrorCode.NONE


@pytest.mark.parametrize("metadata", ["", "m"])
def test_many_offsets_are_kept_and_shown_in_every_version(service: Service, metadata: str) -> None:
    """Those without metadata have a way of their own (protocol/rows.py)."""
    topic_id = id_of_topic(service, WIDE)
    served = advertised(service)
    for version in served[ApiKey.OFFSET_COMMIT]:
        named = {"topic_id": topic_id} if version >= 10 else {"name": WIDE}
        epoch = version if version >= 6 else -1
        given = {index: 1_000 * version + index for index in range(WIDE_PARTITIONS)}
        with RawConnection(service.bootstrap) as connection:
            answer = connection.call(wide_commit(named, given, version, metadata), version)
            (topic,) = answer.topics
            assert (topic.topic_id if version >= 10 else topic.name) in named.values()
            assert [(part.partition_index, part.error_code) for part in topic.partitions] == [
                (index, ErrorCode.NONE) for index in given
            ]
        for asked in served[ApiKey.OFFSET_FETCH]:
            shown = (metadata, epoch if asked >= 5 else -1)
            assert wide_fetch(service, asked, topic_id) == {
                **{index: (offset, *shown) for index, offset in given.items()},
                WIDE_PARTITIONS: (-1, "", -1),
            }


def wide_commit(named: dict[str, Any], offsets: dict[int, int], version: int, metadata: str) -> Any:
    cls = find_request_and_response_classes(ApiKey.OFFSET_COMMIT)[0]
    kind = cls.OffsetCommitRequestTopic
    partitions = [
        kind.OffsetCommitRequestPartition(
            partition_index=index,
            committed_offset=offset,
            committed_leader_epoch=version,
            committed_metadata=metadata,
        )
        for index, offset in offsets.items()
    ]
    return cls(
        group_id=GROUP,
        generation_id_or_member_epoch=-1,
        member_id="",
        retention_time_ms=-1,
        topics=[kind(**named, partitions=partitions)],
    )


def wide_fetch(service: Service, version: int, topic_id: UUID) -> dict[int, tuple[int, str, int]]:
    """Offset, metadata and leader epoch of each partition of the wide topic, and of one more."""
    cls = find_request_and_response_classes(ApiKey.OFFSET_FETCH)[0]
    indexes = list(range(WIDE_PARTITIONS + 1))
    with RawConnection(service.bootstrap) as connection:
        if version < 8:
            topic = cls.OffsetFetchRequestTopic(name=WIDE, partition_indexes=indexes)
            (found,) = connection.call(cls(group_id=GROUP, topics=[topic]), version).topics
        else:
            group = cls.OffsetFetchRequestGroup
            named = {"topic_id": topic_id} if version >= 10 else {"name": WIDE}
            topic = group.OffsetFetchRequestTopics(**named, partition_indexes=indexes)
            (answered,) = connection.call(cls(groups=[group(group_id=GROUP, topics=[topic])]), version).groups
            (found,) = answered.topics
    return {
        part.partition_index: (
            part.committed_offset,
            part.metadata,
            part.committed_leader_epoch if version >= 5 else -1,
        )
        for part in found.partitions
        if part.error_code == ErrorCode.NONE
    }


def id_of_topic(service: Service, name: str = TOPIC) -> UUID:
    request = find_request_and_response_classes(ApiKey.METADATA)[0]
    with RawConnection(service.bootstrap) as connection:
        wanted = request(topics=[request.MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
        (topic,) = connection.call(wanted, 12).topics
    assert isinstance(topic.topic_id, UUID)
    return topic.topic_id


def test_error_codes_are_found_wherever_they_are() -> None:
    assert list(errors_in({"error_code": 1, "a": [{"b": {"top_error_code": 2}}]})) == [1, 2]
