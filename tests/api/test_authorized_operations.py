# SPDX-License-Identifier: Apache-2.0
"""A node reports the operations that its authorizer allows, whoever that is."""

from collections.abc import Collection
from dataclasses import dataclass

from coordinator.authorization.permissions import Decisions, Operation, Permission
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import DescribeClusterRequest, DescribeGroupsRequest, MetadataRequest
from tests.api.asking import FakeNode


@dataclass
class AllowsOne:
    """Allows one operation on the resources of one name, and does not know others of the name `unknown`."""

    operation: Operation
    name: str

    def decisions_if_all_known(self, permissions: Collection[Permission]) -> Decisions | None:
        """The decisions."""
        if any(each.name == "unknown" for each in permissions):
            return None
        return {
            each: ErrorCode.NONE
            if (each.operation, each.name) == (self.operation, self.name)
            else ErrorCode.GROUP_AUTHORIZATION_FAILED
            for each in permissions
        }

    async def fetch_decisions(self, permissions: Collection[Permission]) -> Decisions:
        """Nobody waits for it."""
        raise NotImplementedError


def test_of_a_group(node: FakeNode) -> None:
    node.authorizer = AllowsOne(Operation.DELETE, "g")
    for name in ("g", "h", "unknown"):
        node.groups.commit(name, "t", {0: 1})
    request = DescribeGroupsRequest(groups=["g", "h", "unknown"], include_authorized_operations=True)
    response = node.ask(ApiKey.DESCRIBE_GROUPS, 5, request)
    assert [each.authorized_operations for each in response.groups] == [{Operation.DELETE}, set(), set()]


def test_of_a_topic_that_is_there_and_of_one_that_is_not(node: FakeNode) -> None:
    node.have(a=1)
    node.authorizer = AllowsOne(Operation.READ, "a")
    asked = [MetadataRequest.MetadataRequestTopic(version=8, name=name) for name in ("a", "b")]
    request = MetadataRequest(
        topics=asked, include_cluster_authorized_operations=True, include_topic_authorized_operations=True
    )
    response = node.ask(ApiKey.METADATA, 8, request)
    assert [each.authorized_operations for each in response.topics] == [{Operation.READ}, set()]
    assert response.authorized_operations == set()


def test_of_the_cluster(node: FakeNode) -> None:
    node.authorizer = AllowsOne(Operation.DESCRIBE, "kafka-cluster")
    request = DescribeClusterRequest(include_cluster_authorized_operations=True, endpoint_type=1)
    response = node.ask(ApiKey.DESCRIBE_CLUSTER, 1, request)
    assert response.authorized_operations == {Operation.DESCRIBE}
