# SPDX-License-Identifier: Apache-2.0
"""Rule of OffsetCommit."""

from coordinator.api.operations import Operation
from coordinator.gateway.questions import Right
from coordinator.gateway.rules.membership import OneGroup
from coordinator.gateway.rules.rule import (
    NOT_FOR_GROUP,
    NOT_FOR_TOPIC,
    TOPIC_IDS_FROM,
    Judged,
    May,
    of_group,
    of_topic,
)
from protocol.hot.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
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
            return Judged(partitions=_partitions(request.topics, version))
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
            partitions=_partitions(left, version),
        )


def _partitions(topics: list[OffsetCommitRequestTopic], version: int) -> dict[str | bytes, int]:
    """How many partitions each topic has at least, for all that is said of them."""
    by_id = version >= TOPIC_IDS_FROM
    return {
        topic.topic_id if by_id else topic.name: max(each.partition_index for each in topic.partitions) + 1
        for topic in topics
        if topic.partitions
    }
