# SPDX-License-Identifier: Apache-2.0
"""Deleting a group counted none of its offsets as deleted: they were counted after they had gone."""

from protocol.errors import ErrorCode
from protocol.newtypes import GroupId
from tests.groups.harness import Cluster


def test_the_offsets_of_a_deleted_group_are_counted() -> None:
    cluster = Cluster()
    for partition in range(3):
        assert cluster.commit(1, partition=partition) is ErrorCode.NONE
    error = cluster.manager.delete_group(GroupId("g"))
    assert error is ErrorCode.NONE
    assert cluster.stats.offset_deletions == 3
