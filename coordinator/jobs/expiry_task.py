# SPDX-License-Identifier: Apache-2.0
"""The task that removes expired offsets every `offsets.retention.check.interval.ms`."""

from typing import Final

from coordinator.partitions.group_adoption import Adoptions
from coordinator.partitions.manager import GroupMetadataManager
from coordinator.runtime.clock import Clock
from coordinator.runtime.slices import Slices
from coordinator.telemetry.logs import get_logger
from storage.errors import RecordTooLarge

log = get_logger("expiry")


LOG_LINE: Final = "Removed {} expired offsets in {} milliseconds."
"""Kafka's own line, word for word, by which operators find it."""


async def delete_expired_offsets(manager: GroupMetadataManager, clock: Clock) -> int:
    """Remove the expired offsets of all groups; return their number (GroupMetadataManager.cleanupGroupMetadata).

    The task does not wait for the tombstones: offsets that a crash restores expire again at the next check.
    """
    began_ms = clock.mono_ms()
    now_wall_ms = clock.wall_ms()
    removed = 0
    slices = Slices(clock.nanos)
    for shard in list(manager.owned_partitions.values()):
        for kept in list(shard.groups.values()):
            if kept.group.is_dead or shard.is_lost:
                continue  # removed while this task yielded to the event loop
            try:
                for expired in manager.expire_offsets_in_steps(kept, now_wall_ms):
                    removed += expired
                    if slices.is_over:
                        await slices.yield_to_event_loop()
            except RecordTooLarge as error:
                # message.max.bytes was larger when this was committed. The other groups' offsets go all the same.
                log.error("expired offsets were not removed", group=kept.group_id, reason=str(error))
    took_ms = clock.mono_ms() - began_ms
    message = LOG_LINE.format(removed, took_ms)
    (log.info if removed else log.debug)(message, offsets=removed, milliseconds=took_ms)
    return removed


async def delete_expired_marks(adoptions: Adoptions, clock: Clock) -> int:
    """Remove the marks of groups that began behind a gateway and are gone; return the number of marks."""
    removed = 0
    slices = Slices(clock.nanos)
    try:
        for expired in adoptions.expire_marks_in_steps(clock.wall_ms()):
            removed += expired
            if slices.is_over:
                await slices.yield_to_event_loop()
    except RecordTooLarge as error:  # message.max.bytes was larger when it was written
        log.error("expired marks were not removed", reason=str(error))
    if removed:
        log.info("removed expired marks of groups", marks=removed)
    return removed
