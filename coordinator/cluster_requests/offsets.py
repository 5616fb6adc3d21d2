# SPDX-License-Identifier: Apache-2.0
"""Requests about the committed offsets of groups: OffsetFetch v8-v9, OffsetCommit v8-v9, OffsetDelete v0.

v10 of the first two names topics by id only.
"""

from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from coordinator.cluster_requests.model import Errors, Offsets, TopicPartition, TransferredOffset
from coordinator.cluster_requests.request import ClusterRequest, get_versions, make_request
from coordinator.cluster_requests.retrying import raise_for_code
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.hot.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.hot.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from protocol.newtypes import GroupId, MemberId, Offset

if TYPE_CHECKING:
    from protocol.kafka_python_messages import OffsetDeleteResponse

OFFSETS_PER_STEP: Final = 500
"""The number of a response's offsets that are read in one step."""
NO_GENERATION: Final = -1


class FetchedOffsets(NamedTuple):
    """The offsets that a group has committed; `error_code` is that of the whole group."""

    offsets: dict[TopicPartition, TransferredOffset]
    errors: Errors
    error_code: int


def fetch_offsets(
    groups: Iterable[str], *, require_stable: bool = False, named: Mapping[str, Sequence[int]] | None = None
) -> ClusterRequest[dict[str, FetchedOffsets]]:
    """Ask a coordinator for all offsets of its groups, or those of the partitions in `named`.

    With `require_stable`, UNSTABLE_OFFSET_COMMIT is the error of partitions with open transactions (KIP-447).
    """
    topics = None
    if named is not None:
        topics = [
            OffsetFetchRequestTopics(name=name, partition_indexes=list(partitions))
            for name, partitions in named.items()
        ]
    wanted = [OffsetFetchRequestGroup(group_id=GroupId(group), topics=topics) for group in groups]
    request = OffsetFetchRequest(groups=wanted, require_stable=require_stable)
    api = ApiKey.OFFSET_FETCH
    return ClusterRequest(api, get_versions(api), lambda _version: request, _read_offsets)


def fetch_offsets_of_group(
    group: str, doing: str, *, require_stable: bool = False, named: Mapping[str, Sequence[int]] | None = None
) -> ClusterRequest[Offsets]:
    """As `fetch_offsets` for one group; errors of the group, and of its partitions, are raised."""
    request = fetch_offsets([group], require_stable=require_stable, named=named)

    def read(response: Any) -> Generator[None, None, Offsets]:
        (found,) = (yield from request.read(response)).values()
        raise_for_code(found.error_code, None, doing)
        for place, code in found.errors.items():
            raise_for_code(code, str(place), doing)
        return found.offsets

    return ClusterRequest(request.api, request.versions, request.build, read)


def _read_offsets(response: Any) -> Generator[None, None, dict[str, FetchedOffsets]]:
    found: dict[str, FetchedOffsets] = {}
    number = 0
    for group in response.groups:
        fetched = found[group.group_id] = FetchedOffsets({}, {}, group.error_code)
        for topic in group.topics:
            for part in topic.partitions:
                number += 1
                if number % OFFSETS_PER_STEP == 0:
                    yield
                place = TopicPartition(topic.name, part.partition_index)
                if part.error_code != ErrorCode.NONE:
                    fetched.errors[place] = part.error_code
                elif part.committed_offset >= 0:
                    fetched.offsets[place] = TransferredOffset(
                        part.committed_offset, part.committed_leader_epoch, part.metadata or ""
                    )
    return found


def commit_offsets(
    group: str, offsets: Offsets, *, member: str = "", generation: int = NO_GENERATION
) -> ClusterRequest[Errors]:
    """Ask the group's coordinator to store offsets, by default those of no member; the result has those it refused."""
    topics: dict[str, OffsetCommitRequestTopic] = {}
    for place, offset in offsets.items():
        topic = topics.setdefault(place.topic, OffsetCommitRequestTopic(name=place.topic, partitions=[]))
        topic.partitions.append(
            OffsetCommitRequestPartition(
                partition_index=place.partition,
                committed_offset=Offset(offset.offset),
                committed_leader_epoch=offset.leader_epoch,
                committed_metadata=offset.metadata,
            )
        )
    request = OffsetCommitRequest(
        group_id=GroupId(group),
        generation_id_or_member_epoch=generation,
        member_id=MemberId(member),
        topics=list(topics.values()),
    )
    return make_request(ApiKey.OFFSET_COMMIT, request, _read_errors)


class DeletedOffsets(NamedTuple):
    """The errors of partitions whose offsets were to be deleted; `error_code` is that of the whole request."""

    errors: Errors
    error_code: int


def delete_offsets(group: str, places: Iterable[TopicPartition]) -> ClusterRequest[DeletedOffsets]:
    """Ask the group's coordinator to delete offsets."""
    from protocol.kafka_python_messages import OffsetDeleteRequest

    kind = OffsetDeleteRequest.OffsetDeleteRequestTopic
    topics: dict[str, OffsetDeleteRequest.OffsetDeleteRequestTopic] = {}
    for place in places:
        topic = topics.setdefault(place.topic, kind(name=place.topic, partitions=[]))
        topic.partitions.append(kind.OffsetDeleteRequestPartition(partition_index=place.partition))
    request = OffsetDeleteRequest(group_id=group, topics=list(topics.values()))
    return make_request(ApiKey.OFFSET_DELETE, request, _read_deleted)


def _read_deleted(response: "OffsetDeleteResponse") -> DeletedOffsets:
    return DeletedOffsets(_read_errors(response), response.error_code)


def _read_errors(response: Any) -> Errors:
    return {
        TopicPartition(topic.name, part.partition_index): part.error_code
        for topic in response.topics
        for part in topic.partitions
        if part.error_code != ErrorCode.NONE
    }
