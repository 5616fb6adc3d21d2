# SPDX-License-Identifier: Apache-2.0
"""Replays transactions in a log that a Kafka broker wrote: their offsets take effect at the commit marker.

We write no transactions, but a log that we take over may hold them (KIP-98, KIP-447). This module reads such a
log as Kafka's CoordinatorLoader and OffsetMetadataManager do (`replay`, `replayEndTransactionMarker`).
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from storage.errors import CorruptRecord
from storage.format.batch import Batch, iter_records
from storage.format.markers import COMMIT, marker_type
from storage.format.record_decoder import RecordDecoder
from storage.format.records import OffsetCommitRecord, Record, TopicOffsetCommits, decode_key_and_value

NO_PRODUCER_ID: Final = -1

_Key = tuple[str, str, int]


class OpenTransactionCounts(NamedTuple):
    """The number of transactions with offsets but no marker, and the number of these offsets."""

    transactions: int
    offsets: int


class LogReplay:
    """Turns the batches of one partition, in the order of the log, into the records that count.

    Several logs can share a RecordDecoder, and so the names that it knows.
    """

    __slots__ = ("_loader", "_pending")

    def __init__(self, loader: RecordDecoder) -> None:
        self._loader = loader
        # By producer id; each committed offset with its record's offset in the log.
        self._pending: dict[int, dict[_Key, tuple[int, OffsetCommitRecord]]] = {}

    def replay(self, batch: Batch) -> Sequence[Record | TopicOffsetCommits]:
        """Return the records that take effect with this batch: its own, or those that waited for a commit marker.

        Offsets may be grouped, as by RecordDecoder.decode_with_commits_merged_by_topic. Raises CorruptBatch, and
        CorruptRecord if a record of a known kind cannot be decoded.
        """
        if batch.producer_id == NO_PRODUCER_ID:
            if not self._pending:
                return self._loader.decode_with_commits_merged_by_topic(batch)
            records = self._loader.decode_batch(batch)
            self._replace(records)
            return records
        if batch.is_control:
            return self._end(batch)
        return self._hold(batch)

    @property
    def open_transaction_counts(self) -> OpenTransactionCounts:
        """The numbers of transactions and of offsets that still wait for a marker, and so have no effect yet."""
        waiting = [len(pending) for pending in self._pending.values() if pending]
        return OpenTransactionCounts(len(waiting), sum(waiting))

    def _hold(self, batch: Batch) -> list[Record]:
        """Hold a transaction's offsets back; return all other records, which count at once, as in Kafka."""
        records: list[Record] = []
        for record_offset, _, key, value in iter_records(batch):
            try:
                record = decode_key_and_value(key, value)
            except CorruptRecord as error:
                raise CorruptRecord(f"record of offset {record_offset}: {error.reason}") from error
            if isinstance(record, OffsetCommitRecord) and record.value is not None:
                pending = self._pending.setdefault(batch.producer_id, {})
                pending[record.group, record.topic, record.partition] = (record_offset, record)
            else:
                self._replace((record,))
                records.append(record)
        return records

    def _end(self, batch: Batch) -> list[Record]:
        kind = marker_type(batch)
        ended = self._pending.pop(batch.producer_id, {})
        if kind != COMMIT:
            return []
        for committed, (record_offset, _) in ended.items():
            # Of two offsets the one whose record is later in the log counts, whichever marker came first.
            self._drop(committed, record_offset)
        return [record for _, record in ended.values()]

    def _replace(self, records: Sequence[Record]) -> None:
        """Drop waiting offsets that offsets outside of a transaction, or their removal, supersede."""
        for record in records:
            if isinstance(record, OffsetCommitRecord):
                self._drop((record.group, record.topic, record.partition), None)

    def _drop(self, key: _Key, before: int | None) -> None:
        for pending in self._pending.values():
            if key in pending and (before is None or pending[key][0] < before):
                del pending[key]
