# SPDX-License-Identifier: Apache-2.0
"""The groups' part of a node's settings."""

from coordinator.config import Settings
from coordinator.groups.config import GroupCoordinatorConfig
from coordinator.groups.limits import NodeMemoryLimits


def group_config(settings: Settings) -> GroupCoordinatorConfig:
    """Return the configuration of groups from a node's settings."""
    return GroupCoordinatorConfig(
        min_session_timeout_ms=settings.group_min_session_timeout_ms,
        max_session_timeout_ms=settings.group_max_session_timeout_ms,
        initial_rebalance_delay_ms=settings.group_initial_rebalance_delay_ms,
        max_size=settings.group_max_size,
        new_member_join_timeout_ms=settings.group_new_member_join_timeout_ms,
        offset_metadata_max_bytes=settings.offset_metadata_max_bytes,
        offsets_retention_ms=settings.offsets_retention_ms,
        limits=NodeMemoryLimits(
            **{name: getattr(settings, name) for name in NodeMemoryLimits.__match_args__}
        ),
    )
