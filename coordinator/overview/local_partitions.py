# SPDX-License-Identifier: Apache-2.0
"""Finds one page of the list of partitions among those that this node leads."""

from collections.abc import Callable, Mapping
from heapq import nsmallest

from coordinator.logs.node_log import PartitionLogSize
from coordinator.overview.partition_list import (
    PartitionListPage,
    PartitionListQuery,
    PartitionRow,
    PartitionState,
    make_partition_page,
)
from coordinator.partitions.manager import GroupMetadataManager
from protocol.newtypes import LeaderEpoch, Partition


class LocalPartitions:
    """The partitions of this node."""

    def __init__(
        self,
        node_id: int,
        manager: GroupMetadataManager,
        failed: Mapping[Partition, str],
        epochs: Mapping[Partition, LeaderEpoch],
        log_size: Callable[[Partition], PartitionLogSize | None],
    ) -> None:
        """`epochs` has the epoch of every partition that this node leads or has led.

        `log_size` returns None for a partition that cannot be read.
        """
        self._node_id = node_id
        self._manager = manager
        self._failed = failed
        self._epochs = epochs
        self._log_size = log_size

    def list_partitions(self, query: PartitionListQuery) -> PartitionListPage:
        """Return the page of this node's partitions."""
        manager = self._manager
        led = {*manager.owned_partitions, *manager.loading_partitions, *self._failed}
        first = nsmallest(query.limit + 1, (partition for partition in led if partition > query.after))
        return make_partition_page(map(self._row, first), query, total=len(led))

    def _row(self, partition: Partition) -> PartitionRow:
        size = self._log_size(partition)
        shard = self._manager.owned_partitions.get(partition)
        return PartitionRow(
            partition=partition,
            node=self._node_id,
            leader_epoch=self._epochs[partition],
            state=self._state(partition),
            reason=self._failed.get(partition, ""),
            groups=0 if shard is None else len(shard.groups),
            log_bytes=None if size is None else size.log_bytes,
            end_offset=None if size is None else size.end_offset,
        )

    def _state(self, partition: Partition) -> PartitionState:
        if partition in self._manager.owned_partitions:
            return "served"
        if partition in self._manager.waiting_partitions:
            return "waiting"
        return "loading" if partition in self._manager.loading_partitions else "failed"
