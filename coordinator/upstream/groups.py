# SPDX-License-Identifier: Apache-2.0
"""The groups that the cluster itself coordinates: their list, their states and their offsets."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final

from coordinator.cluster_requests.groups import DESCRIBING_APIS, ListedGroup, fetch_group_state, list_groups
from coordinator.cluster_requests.model import ClusterGroupState, Errors, Offsets, TopicPartition
from coordinator.cluster_requests.offsets import commit_offsets, delete_offsets, fetch_offsets_of_group
from coordinator.cluster_requests.request import ClusterRequest
from coordinator.cluster_requests.retrying import raise_for_code
from coordinator.upstream.cluster import UpstreamCluster
from coordinator.upstream.errors import UpstreamLacksApiVersion
from coordinator.upstream.open_transaction_partitions import Named, OpenTransactionPartitionLister
from protocol.apis import VersionRange
from protocol.errors import ErrorCode
from protocol.newtypes import GroupId
from protocol.wire import MAX_STRING_BYTES

OFFSETS_PER_COMMIT: Final = 1_000
"""The most offsets of one OffsetCommit: Kafka appends them as one batch, whose size its log limits."""
DESCRIBED_BYTES_MAX: Final = MAX_STRING_BYTES - 64
"""For a longer id "Group <id> not found." does not fit, and UNKNOWN_SERVER_ERROR is returned (as by Kafka 4.3)."""
WITHOUT_MESSAGE: Final = VersionRange(5, 5)
"""The version of DescribeGroups that has no error message."""
STRANGER: Final = "groupkeeper-asks"
"""The member id of a commit that every group refuses."""
_REFUSED_IN_FULL: Final = frozenset(
    {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.REBALANCE_IN_PROGRESS}
)


class UpstreamGroups:
    """Sends requests about groups, and repeats them on retriable errors until `upstream.request.timeout.ms`."""

    def __init__(self, cluster: UpstreamCluster, *, offsets_per_commit: int = OFFSETS_PER_COMMIT) -> None:
        """Send requests about groups to `cluster`."""
        self._cluster = cluster
        self._offsets_per_commit = offsets_per_commit
        self._all = OpenTransactionPartitionLister(cluster)

    async def list_groups(self) -> dict[GroupId, ListedGroup]:
        """Return all groups of all brokers by id. Raises UpstreamError if one broker does not respond."""
        brokers = await self._cluster.refresh()
        lists = await asyncio.gather(*(self._list_at(node_id) for node_id in brokers))
        return {group.group: group for listed in lists for group in listed}

    async def fetch_group_state(self, group: GroupId) -> ClusterGroupState:
        """Return the group's state at the cluster, of whichever kind it is. Raises UpstreamError.

        A group is known only to the describing api of its own kind, so all four are tried for one that does not exist.
        ListGroups would take one request, but silently leaves out the groups of partitions that move or load.
        """
        return await self._cluster.call_with_retries(f"describing group {group}", lambda: self._state(group))

    async def fetch_committed_offsets(self, group: GroupId) -> Offsets:
        """Return all offsets that the group has committed, once no open transaction can change them (KIP-447).

        Transactions with the first offset of a partition are not waited for; `wait_for_open_transactions` does that.
        Raises UpstreamError: RetryTimeout if a transaction stays open.
        """
        return await self._cluster.call_with_retries(
            f"reading the offsets of group {group}", lambda: self._committed(group)
        )

    async def wait_for_open_transactions(self, group: GroupId) -> None:
        """Return once no open transaction has offsets of the group, including first ones of a partition.

        A broker reports first ones only for partitions that are named, so all are named that the node's user may
        describe. Raises UpstreamError: RetryTimeout if a transaction stays open.
        """
        for named in await self._all.fetch_partition_portions():
            await self._cluster.call_with_retries(
                f"reading the offsets of group {group}", partial(self._committed, group, named)
            )

    async def commit(self, group: GroupId, offsets: Offsets) -> Errors:
        """Commit for a group without members, and return the partitions that were refused, with Kafka's error codes.

        Raises UpstreamError: UpstreamRequestRefused if the group has members (UNKNOWN_MEMBER_ID) or the user lacks
        the right.
        """
        return await self._in_parts(group, offsets, self._commit)

    async def predict_commit_errors(self, group: GroupId, offsets: Offsets) -> Errors:
        """Return the partitions that `commit` would refuse, with Kafka's error codes, and store nothing.

        A member that does not exist commits them: a broker checks rights, topics and partitions before the group
        refuses it (KafkaApis.handleOffsetCommitRequest). The length of the metadata is checked last, so it does not
        show. Raises UpstreamError.
        """
        return await self._in_parts(group, offsets, self._commit_as_stranger)

    async def _in_parts(
        self,
        group: GroupId,
        offsets: Offsets,
        commit: Callable[[GroupId, Offsets], Awaitable[Errors]],
    ) -> Errors:
        items = sorted(offsets.items())
        refused: Errors = {}
        for start in range(0, len(items), self._offsets_per_commit):
            part = dict(items[start : start + self._offsets_per_commit])
            refused |= await self._cluster.call_with_retries(
                f"committing offsets of group {group}", partial(commit, group, part)
            )
        return refused

    async def delete_offsets(self, group: GroupId, places: Sequence[TopicPartition]) -> Errors:
        """Delete offsets of a group without members, and return the partitions that were refused, with their errors.

        A missing offset is no error. Raises UpstreamError: UpstreamRequestRefused if the group has members, or the
        user lacks the right.
        """
        refused: Errors = {}
        for start in range(0, len(places), self._offsets_per_commit):
            part = places[start : start + self._offsets_per_commit]
            refused |= await self._cluster.call_with_retries(
                f"deleting offsets of group {group}", partial(self._remove, group, part)
            )
        return refused

    # --- one attempt each ---

    async def _list_at(self, node_id: int) -> list[ListedGroup]:
        doing = f"listing the groups of broker {node_id}"
        listed = await self._cluster.call_with_retries(
            doing, lambda: self._cluster.send_and_read(list_groups(doing), node_id=node_id)
        )
        return [group._replace(kind=group.kind.lower()) for group in listed]

    async def _state(self, group: GroupId) -> ClusterGroupState:
        is_long = len(group.encode()) > DESCRIBED_BYTES_MAX
        for kind in ("classic",) if is_long else DESCRIBING_APIS:
            state = await self._state_of_kind(group, kind, is_long=is_long)
            if state.is_present_in_cluster:
                return state
        return await self._state_as_listed(group) if is_long else ClusterGroupState.none()

    async def _state_of_kind(self, group: GroupId, kind: str, *, is_long: bool) -> ClusterGroupState:
        """Return the state of a group of this kind; `none()` if there is none, or the broker lacks this kind."""
        request = fetch_group_state(kind, group)
        try:
            return await self._cluster.call_coordinator_once(
                group, request._replace(versions=WITHOUT_MESSAGE) if is_long else request
            )
        except UpstreamLacksApiVersion as error:
            if error.lacks_api and kind != "classic":
                return ClusterGroupState.none()
            raise

    async def _state_as_listed(self, group: GroupId) -> ClusterGroupState:
        """Return a group's kind and state from its coordinator's list; unless Empty it counts as having members.

        The describing apis of the newer kinds cannot report that they do not know a group with so long an id.
        """
        listed = await self._list_at(await self._cluster.look_up_coordinator(group))
        found = next((each for each in listed if each.group == group), None)
        if found is None:
            return ClusterGroupState.none()
        return ClusterGroupState(found.kind, found.state, int(found.state != "Empty"))

    async def _committed(self, group: GroupId, named: Named | None = None) -> Offsets:
        request = fetch_offsets_of_group(
            group, f"reading the offsets of group {group}", require_stable=True, named=named
        )
        return await self._cluster.call_coordinator_once(group, request)

    async def _commit(self, group: GroupId, offsets: Offsets) -> Errors:
        return await self._refused(group, commit_offsets(group, offsets), _WHOLE_GROUP)

    async def _commit_as_stranger(self, group: GroupId, offsets: Offsets) -> Errors:
        request = commit_offsets(group, offsets, member=STRANGER, generation=0)
        refused = await self._refused(group, request, _WHOLE_GROUP - _STRANGERS)
        return {place: code for place, code in refused.items() if code not in _STRANGERS}

    async def _refused(
        self, group: GroupId, request: ClusterRequest[Errors], of_group: frozenset[ErrorCode]
    ) -> Errors:
        """Return the partitions that a commit is refused for; raise for an error in `of_group`, common to all."""
        errors = await self._cluster.call_coordinator_once(group, request)
        for place, code in errors.items():
            if code in of_group:
                self._check(group, code, str(place), f"committing offsets of group {group}")
        return errors

    async def _remove(self, group: GroupId, places: Sequence[TopicPartition]) -> Errors:
        deleted = await self._cluster.call_coordinator_once(group, delete_offsets(group, places))
        if deleted.error_code != ErrorCode.GROUP_ID_NOT_FOUND:  # else they have expired since they were read
            self._check(group, deleted.error_code, None, f"deleting offsets of group {group}")
        return {place: code for place, code in deleted.errors.items() if code not in _REMOVED}

    def _check(self, group: GroupId, code: int, message: str | None, doing: str) -> None:
        if code == ErrorCode.NOT_COORDINATOR:
            self._cluster.forget_coordinator(group)
        raise_for_code(code, message, doing)


_REMOVED: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})
"""The error for a topic that the cluster has deleted: its offsets go with it."""
_WHOLE_GROUP: Final = frozenset(
    {
        *_REFUSED_IN_FULL,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)
"""The errors about the group, which every partition of a commit gets alike."""
_STRANGERS: Final = frozenset(
    {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.GROUP_ID_NOT_FOUND}
)
"""The errors for the commit of a member that does not exist, in a group that may not exist either."""
