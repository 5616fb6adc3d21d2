# SPDX-License-Identifier: Apache-2.0
"""The settings of how the log is written."""

from typing import Final

import msgspec

from storage.disk.layout import OFFSETS_TOPIC

INDEX_INTERVAL_BYTES_DEFAULT: Final = 4_096
"""Kafka's `log.index.interval.bytes`."""
SEGMENT_BYTES_DEFAULT: Final = 104_857_600
SEGMENT_MS_DEFAULT: Final = 604_800_000
JOURNAL_STEP_BYTES_DEFAULT: Final = 4 << 20
JOURNAL_SPARE_BYTES_MAX_DEFAULT: Final = 64 << 20


class LogSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of how the log is written; all sizes are in bytes."""

    topic: str = OFFSETS_TOPIC
    segment_bytes: int = SEGMENT_BYTES_DEFAULT
    """A segment that would grow beyond this is followed by another: `offsets.topic.segment.bytes`."""
    segment_ms: int = SEGMENT_MS_DEFAULT
    """A segment whose first record is this much older than the next one is followed by another: `segment.ms`."""
    index_interval_bytes: int = INDEX_INTERVAL_BYTES_DEFAULT
    """The bytes of a segment between two entries of its index: `log.index.interval.bytes`."""
    journal_step_bytes: int = JOURNAL_STEP_BYTES_DEFAULT
    """The bytes of disk space that are allocated at once for the journal."""
    journal_spare_bytes_max: int = JOURNAL_SPARE_BYTES_MAX_DEFAULT
    """A journal no larger than this is kept after a checkpoint, and its space used again."""
