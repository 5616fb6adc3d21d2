# SPDX-License-Identifier: Apache-2.0
"""Control records, the markers that end a transaction: only this module reads their key.

    key      version i16, type i16

Kafka's classes are `ControlRecordType` and `EndTransactionMarker` (KIP-98). Only a transaction coordinator writes
markers, so this module only reads them.
"""

from struct import Struct
from typing import Final

from storage.errors import CorruptBatch, CorruptRecord
from storage.format.batch import iter_records
from storage.format.batch_format import Batch

ABORT: Final = 0
COMMIT: Final = 1
ENDS: Final = frozenset({ABORT, COMMIT})
"""The types that end a transaction; Kafka's Raft has others."""
NO_MARKER: Final = -1

_KEY: Final = Struct(">hh")


def parse_control_record_type(key: bytes | None) -> int:
    """Return the type in the key of a control record. Raises CorruptRecord."""
    if key is None or len(key) < _KEY.size:
        raise CorruptRecord("the key of a control record is cut short")
    return int(_KEY.unpack_from(key)[1])


def marker_type(batch: Batch) -> int:
    """Return the type of the marker in a control batch; NO_MARKER if compaction emptied it. Raises CorruptBatch."""
    kind = NO_MARKER
    for _, _, key, _ in iter_records(batch):
        try:
            kind = parse_control_record_type(key)
        except CorruptRecord as error:
            raise CorruptBatch(batch.position, error.reason) from error
    return kind
