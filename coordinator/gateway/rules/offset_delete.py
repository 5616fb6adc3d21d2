# SPDX-License-Identifier: Apache-2.0
"""Rule of OffsetDelete."""

from coordinator.api.operations import Operation, Resource
from coordinator.gateway.questions import Right
from coordinator.gateway.rules.rule import NOT_FOR_GROUP, NOT_FOR_TOPIC, PASSES, Judged, May, of_group
from protocol.messages import OffsetDeleteRequest, OffsetDeleteResponse


class OffsetDelete:
    """The group has to be deletable, topics readable."""

    def rights(self, request: OffsetDeleteRequest, version: int) -> list[Right]:
        """The group, and every topic."""
        topics = [Right(Resource.TOPIC, Operation.READ, topic.name) for topic in request.topics]
        return [of_group(Operation.DELETE, request.group_id), *topics]

    def judge(
        self, request: OffsetDeleteRequest, version: int, may: May
    ) -> Judged[OffsetDeleteRequest, OffsetDeleteResponse]:
        """The group for all, then each topic for itself."""
        if not may(of_group(Operation.DELETE, request.group_id)):
            return Judged(NOT_FOR_GROUP)

        def may_read(topic: OffsetDeleteRequest.OffsetDeleteRequestTopic) -> bool:
            return may(Right(Resource.TOPIC, Operation.READ, topic.name))

        make = OffsetDeleteResponse.OffsetDeleteResponseTopic
        answered = [
            make(
                name=topic.name,
                partitions=[
                    make.OffsetDeleteResponsePartition(
                        partition_index=each.partition_index, error_code=int(NOT_FOR_TOPIC)
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
            if not may_read(topic)
        ]
        if not answered:
            return PASSES

        def merge(response: OffsetDeleteResponse) -> OffsetDeleteResponse:
            if response.error_code:  # of the group: nothing else is said then
                return response
            return OffsetDeleteResponse(
                error_code=0, throttle_time_ms=0, topics=[*answered, *response.topics]
            )

        left = [topic for topic in request.topics if may_read(topic)]
        return Judged(request=OffsetDeleteRequest(group_id=request.group_id, topics=left), merge=merge)

    def groups(self, request: OffsetDeleteRequest, version: int) -> list[str]:
        """This one."""
        return [request.group_id]
