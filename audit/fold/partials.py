# SPDX-License-Identifier: Apache-2.0
"""The kinds of partial summaries, and their common row format.

A row has its `kind`, the place of its range (`partition`, `file`, `segment`: the base offset in the file's name,
`position`: the byte where the range starts), and one struct that is not null, under the name of its kind. Ranges of a
partition are in the order of (segment, position).
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from storage.columns.schema import MEMBERS

RANGE: Final = pa.struct(
    [
        ("end_position", pa.int64()),
        ("first_base_offset", pa.int64()),  # null if the first batch is damaged
        ("next_offset", pa.int64()),  # null if the last batch is damaged
        ("first_position", pa.int64()),
        ("first_epoch", pa.int32()),
        ("max_epoch", pa.int32()),
        ("first_max_timestamp", pa.int64()),
        ("last_max_timestamp", pa.int64()),
        ("batches", pa.int64()),
        ("bytes", pa.int64()),
        ("records", pa.int64()),
        ("commits", pa.int64()),
        ("group_records", pa.int64()),
        ("markers", pa.int64()),
        ("others", pa.int64()),
        ("tombstones", pa.int64()),
        ("oldest_timestamp", pa.int64()),
        ("newest_timestamp", pa.int64()),
    ]
)
"""The content of a range of a file."""

SIGHTING: Final = pa.struct(
    [
        ("check", pa.string()),
        ("count", pa.int64()),
        ("at_position", pa.int64()),
        ("at_offset", pa.int64()),
        ("detail", pa.string()),
    ]
)
"""An observation for a check, `count` times in this range; the place and the detail are those of the first."""

HOUR: Final = pa.struct(
    [("hour_ms", pa.int64()), ("commits", pa.int64()), ("group_records", pa.int64()), ("records", pa.int64())]
)

OFFSET: Final = pa.struct(
    [
        ("group", pa.string()),
        ("topic", pa.string()),
        ("topic_partition", pa.int32()),
        ("pending_of", pa.int64()),  # the producer whose marker this range lacks; null: it counts
        ("first_log_offset", pa.int64()),
        ("first_committed", pa.int64()),  # null if that is a tombstone
        ("first_position", pa.int64()),
        ("count", pa.int64()),
        ("tombstones", pa.int64()),
        ("cleaned", pa.int64()),  # the number of records below the compacted offset
        ("backwards", pa.int64()),
        ("back_position", pa.int64()),
        ("back_detail", pa.string()),
        ("log_offset", pa.int64()),  # from here on: the newest
        ("last_position", pa.int64()),
        ("committed_offset", pa.int64()),
        ("leader_epoch", pa.int32()),
        ("metadata", pa.string()),
        ("commit_timestamp", pa.int64()),
        ("expire_timestamp", pa.int64()),
        ("timestamp", pa.int64()),
        ("tombstone", pa.bool_()),
    ]
)
"""The summary of one group's offset for one partition of a topic in a range."""

GROUP: Final = pa.struct(
    [
        ("group", pa.string()),
        ("first_log_offset", pa.int64()),
        ("first_generation", pa.int32()),  # null if that is a tombstone
        ("first_position", pa.int64()),
        ("count", pa.int64()),
        ("tombstones", pa.int64()),
        ("cleaned", pa.int64()),
        ("rebalances", pa.int64()),
        ("backwards", pa.int64()),
        ("back_position", pa.int64()),
        ("back_detail", pa.string()),
        ("log_offset", pa.int64()),  # from here on: the newest
        ("last_position", pa.int64()),
        ("generation", pa.int32()),
        ("protocol_type", pa.string()),
        ("protocol", pa.string()),
        ("leader", pa.string()),
        ("state_timestamp", pa.int64()),
        ("members", MEMBERS),
        ("timestamp", pa.int64()),
        ("tombstone", pa.bool_()),
    ]
)
"""The summary of one group's own records in a range."""

REBALANCES: Final = pa.struct([("group", pa.string()), ("hour_ms", pa.int64()), ("count", pa.int64())])
"""The number of new generations of a group in one hour."""

ARRIVALS: Final = pa.struct(
    [
        ("group", pa.string()),
        ("who", pa.string()),  # the instance id of a static member; for others the client id and host
        ("hour_ms", pa.int64()),
        ("arrivals", pa.int64()),
        ("together", pa.int64()),  # the most members of that name in one generation
    ]
)
"""The number of times in an hour that members of one name came into a group under a new id."""

OTHER: Final = pa.struct([("group", pa.string()), ("records", pa.int64())])
"""The number of records of a group of another protocol (KIP-848, share, streams), of which no more is read here."""

TRANSACTION: Final = pa.struct(
    [
        ("producer_id", pa.int64()),
        ("first_marker", pa.string()),  # commit or abort; null if the range has none of this producer
        ("has_marker", pa.bool_()),
        ("open_since", pa.int64()),  # time of the first record that no marker in this range follows
        ("open_offset", pa.int64()),
        ("open_position", pa.int64()),
        ("open_records", pa.int64()),
    ]
)
"""The summary of one producer's transactions in a range."""

KINDS: Final[Mapping[str, pa.DataType]] = {
    "range": RANGE,
    "sighting": SIGHTING,
    "hour": HOUR,
    "offset": OFFSET,
    "group": GROUP,
    "rebalances": REBALANCES,
    "arrivals": ARRIVALS,
    "other": OTHER,
    "transaction": TRANSACTION,
}

PLACE: Final = [
    ("partition", pa.int32()),
    ("file", pa.string()),
    ("segment", pa.int64()),
    ("position", pa.int64()),
]
PARTIALS: Final = pa.schema([("kind", pa.string()), *PLACE, *KINDS.items()])

Columns = Mapping[str, pa.Array | Sequence[Any]]


def make_partial_batch(kind: str, place: tuple[int, str, int, int], columns: Columns) -> pa.RecordBatch:
    """Return rows of one kind at `place` (partition, file, segment, position), made of all the kind's `columns`."""
    struct = KINDS[kind]
    fields = [struct.field(index) for index in range(struct.num_fields)]
    arrays = [_array(columns[field.name], field.type) for field in fields]
    content = pa.StructArray.from_arrays(arrays, fields=fields)
    count = len(content)
    values: list[pa.Array] = [pa.repeat(pa.scalar(kind), count)]
    values += [
        pa.repeat(pa.scalar(value, type_), count) for value, (_, type_) in zip(place, PLACE, strict=True)
    ]
    values += [content if name == kind else pa.nulls(count, type_) for name, type_ in KINDS.items()]
    return pa.RecordBatch.from_arrays(values, schema=PARTIALS)


def _array(values: pa.Array | Sequence[Any], type_: pa.DataType) -> pa.Array:
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if isinstance(values, pa.Array):
        return values if values.type == type_ else values.cast(type_)
    return pa.array(values, type_)
