# SPDX-License-Identifier: Apache-2.0
"""A bare Kafka connection for tests: one request, one response, with kafka-python's codec and none of ours.

Using somebody else's codec keeps these tests honest: a mistake in our own cannot cancel itself out.
"""

import socket
import struct
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

from kafka.protocol.admin import IncrementalAlterConfigsRequest
from kafka.protocol.admin.groups import DescribeGroupsRequest, ListGroupsRequest
from kafka.protocol.admin.topics import CreateTopicsRequest, DeleteTopicsRequest
from kafka.protocol.consumer import ListOffsetsRequest
from kafka.protocol.consumer.group import (
    HeartbeatRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
)
from kafka.protocol.metadata import FindCoordinatorRequest, MetadataRequest

from tests.support.waiting import wait_until

NONE = 0
EARLIEST = -2
LATEST = -1
TOPIC_ALREADY_EXISTS = 36


class RawConnection:
    """A blocking connection that can hold several requests under way; not for use by several threads."""

    def __init__(
        self, bootstrap: str, *, client_id: str = "raw", timeout_s: float = 120.0, source: str = ""
    ) -> None:
        """Connect to `host:port`, from the address `source` if one is given.

        Every later call waits at most `timeout_s` for bytes and raises OSError then.
        """
        host, port = bootstrap.rsplit(":", 1)
        self._client_id = client_id
        self._socket = socket.create_connection(
            (host, int(port)), timeout=timeout_s, source_address=(source, 0) if source else None
        )
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._input = self._socket.makefile("rb")
        self._under_way: deque[Any] = deque()
        self._correlation_id = 0

    def __enter__(self) -> "RawConnection":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the socket."""
        self._input.close()
        self._socket.close()

    def reset(self) -> None:
        """Close with RST: what the peer has not read yet is lost."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()

    def send(self, request: Any, version: int) -> None:
        """Send one request without waiting for its response."""
        self._correlation_id += 1
        request.API_VERSION = version
        request.with_header(correlation_id=self._correlation_id, client_id=self._client_id)
        self._under_way.append(request)
        self._socket.sendall(request.encode(header=True, framed=True))

    def receive(self) -> Any:
        """Return the response to the oldest request under way; raises ConnectionError when the server closed."""
        (length,) = struct.unpack(">i", self._read(4))
        frame = self._read(length)
        request = self._under_way.popleft()
        response = request.header.get_response_class().decode(frame, header=True)
        answered = response.header.correlation_id
        assert answered == request.header.correlation_id, f"answer to {answered}, expected {request.header}"
        return response

    def call(self, request: Any, version: int) -> Any:
        """Send one request and return its response."""
        assert not self._under_way, "there are requests under way"
        self.send(request, version)
        return self.receive()

    def _read(self, count: int) -> bytes:
        data = self._input.read(count)
        if len(data) < count:
            raise ConnectionError("the server closed the connection")
        return data


def create_topic(
    bootstrap: str, topic: str, partitions: int = 12, *, configs: Mapping[str, str] | None = None
) -> None:
    """Create `topic` and wait until the server shows all of its partitions, and leads them.

    Kafka tells of a partition before it leads it: who asks at once hears NOT_LEADER_OR_FOLLOWER.
    """
    with RawConnection(bootstrap) as connection:
        kind = CreateTopicsRequest.CreatableTopic
        settings = [
            kind.CreatableTopicConfig(name=name, value=value) for name, value in (configs or {}).items()
        ]
        wanted = kind(
            name=topic, num_partitions=partitions, replication_factor=1, assignments=[], configs=settings
        )
        request = CreateTopicsRequest(topics=[wanted], timeout_ms=30_000, validate_only=False)
        (created,) = connection.call(request, 5).topics
        assert created.error_code in {NONE, TOPIC_ALREADY_EXISTS}, (
            f"{topic}: {created.error_code} {created.error_message}"
        )

        def visible() -> bool:
            asked = MetadataRequest(
                topics=[MetadataRequest.MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False
            )
            (found,) = connection.call(asked, 8).topics
            leaders = [partition.leader_id for partition in found.partitions if partition.error_code == NONE]
            return found.error_code == NONE and len(leaders) == partitions and min(leaders) >= 0

        wait_until(visible, what=f"{partitions} partitions of {topic} in the metadata")
        wait_until(lambda: _leads(connection, topic, partitions), what=f"leaders of {topic}")


def _leads(connection: "RawConnection", topic: str, partitions: int) -> bool:
    kind = ListOffsetsRequest.ListOffsetsTopic
    rows = [
        kind.ListOffsetsPartition(partition_index=index, current_leader_epoch=-1, timestamp=EARLIEST)
        for index in range(partitions)
    ]
    asked = ListOffsetsRequest(replica_id=-1, isolation_level=0, topics=[kind(name=topic, partitions=rows)])
    (found,) = connection.call(asked, 8).topics
    return all(partition.error_code == NONE for partition in found.partitions)


def find_coordinator(bootstrap: str, group: str) -> Any:
    """Ask once who coordinates a group; what comes of it may be an error."""
    with RawConnection(bootstrap) as connection:
        return connection.call(FindCoordinatorRequest(key=group, key_type=0), 2)


def wait_for_coordinator(bootstrap: str, group: str) -> None:
    """Return once the group's coordinator is up and has the group's partition loaded.

    Kafka creates its offsets topic when the first coordinator is looked for; that takes a second or two.
    """

    def settled() -> bool:
        with RawConnection(bootstrap) as connection:
            found = connection.call(FindCoordinatorRequest(key=group, key_type=0), 2)
            return bool(found.error_code == NONE and ask_offsets(connection, group).error_code == NONE)

    wait_until(settled, what=f"the coordinator of {group}")


def commit_offsets(bootstrap: str, group: str, topic: str, offsets: Mapping[int, int]) -> None:
    """Commit as a standalone consumer: no member, no generation."""
    with RawConnection(bootstrap) as connection:
        answer = connection.call(standalone_commit(group, topic, offsets), 8)
    errors = {
        part.partition_index: part.error_code
        for part in answer.topics[0].partitions
        if part.error_code != NONE
    }
    assert not errors, f"commit of {group} refused: {errors}"


def standalone_commit(group: str, topic: str, offsets: Mapping[int, int], *, metadata: str = "") -> Any:
    """Build the OffsetCommit of a consumer that is no member of a group."""
    request = OffsetCommitRequest
    partitions = [
        request.OffsetCommitRequestTopic.OffsetCommitRequestPartition(
            partition_index=partition,
            committed_offset=offset,
            committed_leader_epoch=-1,
            committed_metadata=metadata,
        )
        for partition, offset in offsets.items()
    ]
    return request(
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        group_instance_id=None,
        topics=[request.OffsetCommitRequestTopic(name=topic, partitions=partitions)],
    )


def offset_delete(group: str, topic: str, partitions: Iterable[int]) -> Any:
    """Build the OffsetDelete of some partitions of one topic."""
    request = OffsetDeleteRequest
    parts = [
        request.OffsetDeleteRequestTopic.OffsetDeleteRequestPartition(partition_index=partition)
        for partition in partitions
    ]
    return request(group_id=group, topics=[request.OffsetDeleteRequestTopic(name=topic, partitions=parts)])


def fetch_offsets(bootstrap: str, group: str) -> dict[tuple[str, int], int]:
    """Return all committed offsets of a group by topic and partition."""
    with RawConnection(bootstrap) as connection:
        return committed_offsets(connection, group)


def committed_offsets(
    connection: RawConnection, group: str, *, stable: bool = True
) -> dict[tuple[str, int], int]:
    """Return all committed offsets of a group by topic and partition, over an open connection.

    Those with an open transaction are -1, unless they need not be `stable`.
    """
    answer = ask_offsets(connection, group, stable=stable)
    assert answer.error_code == NONE, f"fetch of {group}: error {answer.error_code}"
    return {
        (topic.name, part.partition_index): part.committed_offset
        for topic in answer.topics
        for part in topic.partitions
    }


def describe(group: str) -> Any:
    """Build the DescribeGroups of one group."""
    return DescribeGroupsRequest(groups=[group], include_authorized_operations=False)


def describe_group(bootstrap: str, group: str) -> Any:
    """Return DescribeGroups' answer for one group."""
    with RawConnection(bootstrap) as connection:
        (described,) = connection.call(describe(group), 5).groups
    assert described.error_code == NONE, f"describe of {group}: error {described.error_code}"
    return described


def list_groups(bootstrap: str) -> dict[str, str]:
    """Return the state of every group by its id."""
    with RawConnection(bootstrap) as connection:
        answer = connection.call(ListGroupsRequest(states_filter=[]), 4)
    assert answer.error_code == NONE, f"list: error {answer.error_code}"
    return {group.group_id: group.group_state for group in answer.groups}


def heartbeat(
    bootstrap: str, group: str, generation: int, member_id: str, instance_id: str | None = None
) -> int:
    """Send one heartbeat as that member and return the error code."""
    with RawConnection(bootstrap) as connection:
        request = HeartbeatRequest(
            group_id=group, generation_id=generation, member_id=member_id, group_instance_id=instance_id
        )
        return int(connection.call(request, 3).error_code)


def ask_offsets(connection: RawConnection, group: str, *, stable: bool = True) -> Any:
    """Ask for all committed offsets of a group."""
    return connection.call(OffsetFetchRequest(group_id=group, topics=None, require_stable=stable), 7)


def metadata(bootstrap: str, topic: str) -> Any:
    """Return Metadata's answer for one topic, which is not created."""
    with RawConnection(bootstrap) as connection:
        wanted = MetadataRequest.MetadataRequestTopic(name=topic)
        return connection.call(MetadataRequest(topics=[wanted], allow_auto_topic_creation=False), 8)


def alter_configs(bootstrap: str, topic: str, configs: Mapping[str, str]) -> None:
    """Set some settings of a topic."""
    kind = IncrementalAlterConfigsRequest.AlterConfigsResource
    rows = [
        kind.AlterableConfig(name=name, config_operation=0, value=value) for name, value in configs.items()
    ]
    resource = kind(resource_type=2, resource_name=topic, configs=rows)
    with RawConnection(bootstrap) as connection:
        request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
        (answer,) = connection.call(request, 1).responses
    assert answer.error_code == NONE, f"{topic}: {answer.error_code} {answer.error_message}"


def delete_topic(bootstrap: str, topic: str) -> None:
    """Delete a topic."""
    with RawConnection(bootstrap) as connection:
        (answer,) = connection.call(DeleteTopicsRequest(topic_names=[topic], timeout_ms=30_000), 5).responses
    assert answer.error_code == NONE, f"{topic}: {answer.error_code}"


def end_offset(bootstrap: str, topic: str, partition: int) -> int:
    """Return where a partition ends, once that is known."""
    cls = ListOffsetsRequest.ListOffsetsTopic
    part = cls.ListOffsetsPartition(partition_index=partition, current_leader_epoch=-1, timestamp=LATEST)
    request = ListOffsetsRequest(
        replica_id=-1, isolation_level=0, topics=[cls(name=topic, partitions=[part])]
    )

    def told() -> Any:
        with RawConnection(bootstrap) as connection:
            (answer,) = connection.call(request, 5).topics[0].partitions
        return answer if answer.error_code == NONE else None

    return int(wait_until(told, what=f"the end of {topic}-{partition}").offset)
