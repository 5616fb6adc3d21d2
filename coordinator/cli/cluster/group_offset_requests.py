# SPDX-License-Identifier: Apache-2.0
"""Reads, commits and deletes the offsets of groups: OffsetFetch v8-v9, OffsetCommit v8-v9, OffsetDelete v0.

v10 of the first two names topics by id only.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from coordinator.cli.cluster.client import RETRIABLE, Client, RefusedAnswer
from coordinator.cli.cluster.connection import NodeConnection, SupportedVersionRange
from coordinator.cli.cluster.model import CommittedOffset, PartitionRef
from coordinator.upstream.errors import error_name
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.hot.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from protocol.hot.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)
from protocol.newtypes import GroupId, Offset

if TYPE_CHECKING:
    from protocol.kafka_python_messages import OffsetDeleteResponse

OFFSETS_AT_ONCE: Final = 5_000
"""The maximum number of offsets that one request commits."""

Failures = dict[PartitionRef, str]
"""The partitions that were refused, with the name of the error."""


def fetch_committed_offsets(
    client: Client, groups: Sequence[str]
) -> dict[str, list[CommittedOffset] | RefusedAnswer]:
    """Return the offsets that each group has committed, sorted by topic and partition; none for a missing group."""
    return client.ask_group_coordinators("reading the offsets of", groups, _committed_on)


def _committed_on(
    connection: NodeConnection, groups: Sequence[str]
) -> Mapping[str, list[CommittedOffset] | RefusedAnswer]:
    everything = [OffsetFetchRequestGroup(group_id=GroupId(group), topics=None) for group in groups]
    response: OffsetFetchResponse = connection.ask(
        ApiKey.OFFSET_FETCH, SupportedVersionRange(8, 9), OffsetFetchRequest(groups=everything)
    )
    answers: dict[str, list[CommittedOffset] | RefusedAnswer] = {}
    for answer in response.groups:
        refused = answer.error_code != ErrorCode.NONE
        answers[answer.group_id] = RefusedAnswer(answer.error_code) if refused else _offsets(answer)
    return answers


def _offsets(answer: OffsetFetchResponseGroup) -> list[CommittedOffset]:
    return sorted(
        CommittedOffset(
            topic.name, p.partition_index, p.committed_offset, p.committed_leader_epoch, p.metadata or ""
        )
        for topic in answer.topics
        for p in topic.partitions
        if p.error_code == ErrorCode.NONE
    )


def commit(client: Client, group: str, offsets: Iterable[CommittedOffset]) -> Failures:
    """Commit offsets for a group without members, which need not exist; return the partitions that were refused."""
    rows = list(offsets)
    failures: Failures = {}
    for start in range(0, len(rows), OFFSETS_AT_ONCE):
        part = rows[start : start + OFFSETS_AT_ONCE]
        failures |= client.ask_group_coordinator(
            "setting offsets of", group, partial(commit_at_coordinator, group=group, offsets=part)
        )
    return failures


def commit_at_coordinator(
    connection: NodeConnection, group: str, offsets: Sequence[CommittedOffset]
) -> Failures | RefusedAnswer:
    """Commit offsets over the connection to the group's coordinator."""
    topics: dict[str, OffsetCommitRequestTopic] = {}
    for each in offsets:
        topic = topics.setdefault(each.topic, OffsetCommitRequestTopic(name=each.topic, partitions=[]))
        topic.partitions.append(
            OffsetCommitRequestPartition(
                partition_index=each.partition,
                committed_offset=Offset(each.offset),
                committed_leader_epoch=each.leader_epoch,
                committed_metadata=each.metadata,
            )
        )
    request = OffsetCommitRequest(group_id=GroupId(group), topics=list(topics.values()))
    return _failures(connection.ask(ApiKey.OFFSET_COMMIT, SupportedVersionRange(8, 9), request))


def delete_offsets(client: Client, group: str, places: Iterable[PartitionRef]) -> Failures:
    """Delete committed offsets; return the refused partitions. Raises CommandError if the whole request is refused."""
    from protocol.kafka_python_messages import OffsetDeleteRequest

    kind = OffsetDeleteRequest.OffsetDeleteRequestTopic
    topics: dict[str, OffsetDeleteRequest.OffsetDeleteRequestTopic] = {}
    for place in places:
        topic = topics.setdefault(place.topic, kind(name=place.topic, partitions=[]))
        topic.partitions.append(kind.OffsetDeleteRequestPartition(partition_index=place.partition))
    request = OffsetDeleteRequest(group_id=group, topics=list(topics.values()))

    def ask(connection: NodeConnection) -> Failures | RefusedAnswer:
        response = connection.ask(ApiKey.OFFSET_DELETE, SupportedVersionRange(0, 0), request)
        if response.error_code != ErrorCode.NONE:
            return RefusedAnswer(response.error_code)
        return _failures(response)

    return client.ask_group_coordinator("deleting offsets of", group, ask)


def _failures(response: "OffsetCommitResponse | OffsetDeleteResponse") -> Failures | RefusedAnswer:
    codes = {
        PartitionRef(t.name, p.partition_index): p.error_code for t in response.topics for p in t.partitions
    }
    not_ready = [code for code in codes.values() if code in RETRIABLE]
    if not_ready:
        return RefusedAnswer(not_ready[0])
    return {place: error_name(code) for place, code in codes.items() if code != ErrorCode.NONE}
