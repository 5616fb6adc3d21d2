# SPDX-License-Identifier: Apache-2.0
"""The columns of a log's rows: one row for each record, or one for a batch without a readable record.

Numbers are those of `storage.format.records`: -1 for a leader epoch or state timestamp that was not given. All
timestamps are milliseconds since the epoch.
"""

from typing import Final

import pyarrow as pa

MEMBERS: Final = pa.list_(
    pa.field(
        "element",
        pa.struct(
            [
                ("member_id", pa.string()),
                ("group_instance_id", pa.string()),
                ("client_id", pa.string()),
                ("client_host", pa.string()),
                ("session_timeout", pa.int32()),
                ("rebalance_timeout", pa.int32()),
            ]
        ),
    )
)

BATCH_COLUMNS: Final = pa.schema(
    [
        ("position", pa.int64()),  # byte position of the batch in its file
        ("batch_bytes", pa.int32()),
        ("base_offset", pa.int64()),
        ("last_offset", pa.int64()),
        ("leader_epoch", pa.int32()),
        ("producer_id", pa.int64()),
        ("producer_epoch", pa.int32()),
        ("transactional", pa.bool_()),
        ("control", pa.bool_()),
        ("magic", pa.int32()),
        ("compression", pa.string()),
        ("crc_ok", pa.bool_()),  # null if no header could be read
        ("damage", pa.string()),  # what is wrong with the batch, or with these bytes
        ("tail", pa.bool_()),  # the newest segment ends within this batch, which is no damage
        ("max_timestamp", pa.int64()),
    ]
)

RECORD_COLUMNS: Final = pa.schema(
    [
        ("offset", pa.int64()),  # null in the row of a batch without a readable record
        ("timestamp", pa.int64()),
        ("key_type", pa.string()),
        ("key_version", pa.int32()),
        ("value_version", pa.int32()),
        ("group", pa.string()),
        ("topic", pa.string()),
        ("topic_partition", pa.int32()),
        ("committed_offset", pa.int64()),
        ("committed_leader_epoch", pa.int32()),
        ("metadata", pa.string()),
        ("metadata_bytes", pa.int32()),
        ("commit_timestamp", pa.int64()),
        ("expire_timestamp", pa.int64()),  # null: no expiry of its own
        ("topic_id", pa.string()),
        ("protocol_type", pa.string()),
        ("generation", pa.int32()),
        ("protocol", pa.string()),
        ("leader", pa.string()),
        ("state_timestamp", pa.int64()),
        ("members", MEMBERS),
        ("tombstone", pa.bool_()),
        ("marker", pa.string()),
        ("raw_key", pa.binary()),  # only of a record that is unknown or cannot be decoded
        ("raw_value", pa.binary()),
        ("problem", pa.string()),  # why the key or the value could not be decoded
    ]
)

COLUMNS: Final = pa.schema([*BATCH_COLUMNS, *RECORD_COLUMNS])

OFFSET_COMMIT: Final = "offset_commit"
GROUP_METADATA: Final = "group_metadata"
TRANSACTION_MARKER: Final = "transaction_marker"
UNKNOWN: Final = "unknown"
NULL_KEY: Final = "null key"
KEY_TYPES: Final = (OFFSET_COMMIT, GROUP_METADATA, TRANSACTION_MARKER, UNKNOWN, NULL_KEY)
"""The values of `key_type`."""

COMMIT: Final = "commit"
ABORT: Final = "abort"
