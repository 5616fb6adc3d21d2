# SPDX-License-Identifier: Apache-2.0
"""The cluster's topics: names, ids and partition counts, from one look at all of them or from requests by name."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from coordinator.upstream.broker_connection import decode_answer_in_turns
from coordinator.upstream.cluster import UpstreamCluster
from coordinator.upstream.topic_diff import ABSENT, UNSURE, SeenTopic, TopicSnapshot, Verdict
from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from protocol.kafka_python_messages import MetadataResponse

NAMES_PER_QUESTION: Final = 500


@dataclass(slots=True)
class _LastLook:
    body: bytes
    look: TopicSnapshot


class UpstreamTopicsReader:
    """Reads the topics; a response with the same bytes as the one before is not decoded again."""

    def __init__(self, cluster: UpstreamCluster) -> None:
        """Read the topics of `cluster`."""
        self._cluster = cluster
        self._last: _LastLook | None = None

    async def fetch_all_topics(self) -> TopicSnapshot:
        """Return all topics that the node's user may describe, as some broker knows them. Raises UpstreamError."""
        from protocol.kafka_python_messages import topics_by_name

        answer = await self._cluster.fetch_encoded_metadata(None)
        last = self._last
        if last is not None and answer.encoded_body == last.body:
            return last.look
        response = await decode_answer_in_turns(answer, self._cluster.last_answering_address)
        self._cluster.check_and_update_brokers(response)
        look = TopicSnapshot(
            {
                name: _seen(topic)
                for name, topic in topics_by_name(response).items()
                if topic.error_code == ErrorCode.NONE
            }
        )
        self._last = _LastLook(bytes(answer.encoded_body), look)
        return look

    async def fetch_topics_by_name(
        self, names: Sequence[str], *, node_id: int | None = None
    ) -> dict[str, Verdict]:
        """Ask one broker, or any, for topics by name: each is a SeenTopic, ABSENT or UNSURE. Raises UpstreamError.

        ABSENT stands only for UNKNOWN_TOPIC_OR_PARTITION; for a topic that the node's user may not describe, a broker
        returns only TOPIC_AUTHORIZATION_FAILED, so it is UNSURE.
        """
        from protocol.kafka_python_messages import topics_by_name

        found: dict[str, Verdict] = {}
        for start in range(0, len(names), NAMES_PER_QUESTION):
            part = list(names[start : start + NAMES_PER_QUESTION])
            response = await self._cluster.fetch_metadata(part, node_id=node_id)
            found |= {name: _verdict(topic) for name, topic in topics_by_name(response).items()}
        return {name: found.get(name, UNSURE) for name in names}


def _seen(topic: "MetadataResponse.MetadataResponseTopic") -> SeenTopic:
    return SeenTopic(topic.topic_id.bytes, len(topic.partitions))


def _verdict(topic: "MetadataResponse.MetadataResponseTopic") -> Verdict:
    if topic.error_code == ErrorCode.NONE:
        return _seen(topic)
    return ABSENT if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION else UNSURE
