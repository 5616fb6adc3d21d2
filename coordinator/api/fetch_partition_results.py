# SPDX-License-Identifier: Apache-2.0
"""The results of one partition in a Fetch response."""

from functools import lru_cache
from typing import Any, Final

from coordinator.topology.view import Leader
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import FetchResponse
from protocol.newtypes import Offset
from storage.partition.reader import ReadResult

UNKNOWN: Final = -1
WHERE_IT_IS_NOW_FROM: Final = 16
LED_ELSEWHERE: Final = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})
"""The errors whose response names the current leader (KIP-951)."""
DOES_NOT_EXIST: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})
"""The errors that Kafka finds without its log: their list of aborted transactions is empty, that of others null."""

FetchableTopicResponse = FetchResponse.FetchableTopicResponse
PartitionData = FetchableTopicResponse.PartitionData


@lru_cache(maxsize=16_384)  # some 10 MB at most
def make_empty_result(index: int, offset: Offset, version: int, *, committed: bool) -> PartitionData:
    """Return the empty result of a partition; cached, because most polls of a consumer repeat its last one."""
    return PartitionData(
        version=version,
        partition_index=index,
        high_watermark=offset,
        last_stable_offset=offset,
        log_start_offset=0,
        aborted_transactions=[] if committed else None,
        records=b"",
    )


def make_error_result(
    index: int, error: ErrorCode, version: int, leader: Leader | None = None
) -> PartitionData:
    """Return the result with an error, and with the current leader if the client can use it."""
    current: Any = None  # the stub does not know that this struct is optional
    if leader is not None and error in LED_ELSEWHERE and version >= WHERE_IT_IS_NOW_FROM:
        current = PartitionData.LeaderIdAndEpoch(
            version=version, leader_id=leader.node_id, leader_epoch=leader.epoch
        )
    return PartitionData(
        version=version,
        partition_index=index,
        error_code=error,
        high_watermark=UNKNOWN,
        last_stable_offset=UNKNOWN,
        log_start_offset=UNKNOWN,
        current_leader=current,
        aborted_transactions=[] if error in DOES_NOT_EXIST else None,
        records=b"",
    )


def make_log_result(index: int, found: ReadResult, version: int, *, committed: bool) -> PartitionData:
    """Return the result with batches of the log."""
    aborted = None
    diverging: Any = None
    if committed:
        aborted = [
            PartitionData.AbortedTransaction(
                version=version, producer_id=each.producer_id, first_offset=each.first_offset
            )
            for each in found.aborted
        ]
    if found.diverging is not None:
        epoch, end_offset = found.diverging
        diverging = PartitionData.EpochEndOffset(version=version, epoch=epoch, end_offset=end_offset)
    return PartitionData(
        version=version,
        partition_index=index,
        high_watermark=found.end_offset,
        last_stable_offset=found.stable_offset,
        log_start_offset=found.start_offset,
        diverging_epoch=diverging,
        aborted_transactions=aborted,
        records=found.records,
    )
