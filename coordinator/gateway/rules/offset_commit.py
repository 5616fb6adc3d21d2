# SPDX-License-Identifier: Apache-2.0
"""Rule of OffsetCommit."""

from coordinator.api.operations import Operation
from coordinator.gateway.questions import Right
from coordinator.gateway.rules.membership import OneGroup
from coordinator.gateway.rules.rule import (
    NOT_FOR_GROUP,
    NOT_FOR_TOPIC,
    PASSES,
    Judged,
    May,
    of_group,
    of_topic,
)
from protocol.hot.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from protocol.value import replaced


class OffsetCommit(OneGroup[OffsetCommitRequest, OffsetCommitResponse]):
    """Topics that may not be read are refused, the others go to the coordinator."""

    def rights(self, request: OffsetCommitRequest, version: int) -> list[Right]:
        """The group, and every topic."""
        topics = [of_topic(Operation.READ, topic, version) for topic in request.topics]
        return [of_group(Operation.READ, request.group_id), *topics]

    def judge(
        self, request: OffsetCommitRequest, version: int, may: May
    ) -> Judged[OffsetCommitRequest, OffsetCommitResponse]:
        """The group for all, then each topic for itself."""
        if not may(of_group(Operation.READ, request.group_id)):
            return Judged(NOT_FOR_GROUP)
        refused = [topic for topic in request.topics if not may(of_topic(Operation.READ, topic, version))]
        if not refused:
            return PASSES
        answered = [
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(each.partition_index, NOT_FOR_TOPIC)
                    for each in topic.partitions
                ],
            )
            for topic in refused
        ]
        left = [topic for topic in request.topics if may(of_topic(Operation.READ, topic, version))]
        if not left:
            return Judged(answer=OffsetCommitResponse(topics=answered))
        return Judged(
            request=replaced(request, topics=left),
            merge=lambda response: replaced(response, topics=[*answered, *response.topics]),
        )
