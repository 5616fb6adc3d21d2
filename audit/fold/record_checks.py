# SPDX-License-Identifier: Apache-2.0
"""Notes records that cannot be read, are of an unknown kind, or have values beyond the limits."""

from collections.abc import Iterator
from struct import Struct
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from audit.fold.check_sightings import CheckSightings
from audit.fold.fold_parameters import FoldParameters
from audit.fold.partials import make_partial_batch
from audit.fold.rows import Bools, FoldInputRows
from storage.columns.schema import NULL_KEY, UNKNOWN

KEY_VERSIONS_OF_KAFKA: Final = (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14, 15, 16, 17, 19, 20, 21, 22, 23)
"""The key versions that Kafka 4.4 writes: `CoordinatorRecordType`, for groups of all its protocols.

Each key starts with the group.
"""

_HEAD: Final = Struct(">hh")


def note_problem_records(
    rows: FoldInputRows, rules: FoldParameters, seen: CheckSightings
) -> Iterator[pa.RecordBatch]:
    """Note records with problems; yield the groups of other protocols."""
    unreadable = rows.non_null_mask("problem") | rows.equality_mask("key_type", NULL_KEY)
    seen.add_sighting_of_rows(
        "undecodable", unreadable, lambda row: rows.value_at("problem", row) or "the key is null", always=True
    )
    unknown = rows.equality_mask("key_type", UNKNOWN) & ~unreadable
    if unknown.any():
        known = pc.is_in(
            rows.get_arrow_column("key_version"), value_set=pa.array(KEY_VERSIONS_OF_KAFKA, pa.int32())
        )
        of_kafka = known.to_numpy(zero_copy_only=False)
        seen.add_sighting_of_rows(
            "unknown_type",
            unknown & ~of_kafka,
            lambda row: f"a key of version {rows.value_at('key_version', row)}",
        )
        yield from _other_groups(rows, unknown & of_kafka)
    _metadata(rows, rules, seen)
    _future(rows, rules, seen)


def _other_groups(rows: FoldInputRows, which: Bools) -> Iterator[pa.RecordBatch]:
    keys, counts = rows.encode_column_as_dictionary("raw_key", np.flatnonzero(which))
    totals: dict[str, int] = {}
    for key, count in zip(counts.to_pylist(), np.bincount(keys, minlength=len(counts)).tolist(), strict=True):
        group = _group_of(key)
        if group is not None and count:
            totals[group] = totals.get(group, 0) + count
    if totals:
        yield make_partial_batch(
            "other", rows.place, {"group": list(totals), "records": list(totals.values())}
        )


def _group_of(key: bytes) -> str | None:
    """Return the string that follows the version of a key, or None."""
    if len(key) < _HEAD.size:
        return None
    _, size = _HEAD.unpack_from(key)
    return key[4 : 4 + size].decode("utf-8", "replace") if 0 <= size <= len(key) - 4 else None


def _metadata(rows: FoldInputRows, rules: FoldParameters, seen: CheckSightings) -> None:
    long = np.flatnonzero(rows.longs("metadata_bytes") > rules.metadata_bytes_max)
    # Kafka's limit is on characters (OffsetMetadataManager.validateOffsetMetadata), which are fewer than bytes
    lengths = [
        len(text.encode("utf-16-le")) // 2 for text in rows.column_values_at("metadata", long).to_pylist()
    ]
    above = np.array(lengths, np.int64) > rules.metadata_bytes_max
    of = dict(zip(long.tolist(), lengths, strict=True))
    seen.add_sighting_of_rows(
        "metadata_too_long",
        long[above],
        lambda row: (
            f"{of[row]} characters from group {rows.value_at('group', row)!r}, of {rules.metadata_bytes_max}"
        ),
    )


def _future(rows: FoldInputRows, rules: FoldParameters, seen: CheckSightings) -> None:
    latest = rules.now_ms + rules.future_ms
    time = np.maximum(rows.longs("timestamp"), rows.longs("commit_timestamp"))
    seen.add_sighting_of_rows(
        "future_time",
        time > latest,
        lambda row: (
            f"{(time[row] - rules.now_ms) / 1000:.0f} s ahead of the audit, "
            f"in a record of group {rows.value_at('group', row)!r}"
        ),
    )
