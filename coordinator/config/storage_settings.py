# SPDX-License-Identifier: Apache-2.0
"""Makes the settings of the log from the settings of a node, in the same way for every kind of process."""

from coordinator.config import Settings
from storage.settings import LogSettings


def make_storage_settings(settings: Settings) -> LogSettings:
    """Return the settings by which the log is written."""
    return LogSettings(
        segment_bytes=settings.offsets_topic_segment_bytes,
        # Records that must be compacted by then must not be in the active segment (LogConfig.maxSegmentMs).
        segment_ms=min(settings.segment_ms, settings.max_compaction_lag_ms),
        index_interval_bytes=settings.log_index_interval_bytes,
    )
