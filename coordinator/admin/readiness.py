# SPDX-License-Identifier: Apache-2.0
"""The readiness of a node, as /ready shows it."""

from typing import NotRequired

from coordinator.admin.ready_response import ReadyResponse
from coordinator.logs.node_log import LogUpkeep
from coordinator.partitions.leadership import Leadership
from coordinator.partitions.loader import Loader
from coordinator.partitions.manager import GroupMetadataManager
from coordinator.partitions.misplaced_group_texts import PUT_IN_PLACE
from coordinator.runtime.clock import Clock
from coordinator.runtime.periodic_jobs import Scheduler
from coordinator.telemetry.stats import Stats
from protocol.placement import find_swapped_directories


class NodeReadyResponse(ReadyResponse):
    """The fields of a node's /ready. Times are seconds since the Unix epoch."""

    log_refusing_since: float | None
    log_refusing_reason: str | None
    jobs_failing_since: dict[str, float]
    partitions_owned: int
    partitions_loading: list[int]
    partitions_waiting: list[int]
    loads: dict[str, dict[str, int]]
    partitions_failed: dict[str, str]
    partitions_in_wrong_place: dict[str, str]
    gateways: NotRequired[dict[str, int]]
    """The number of a gateway's processes that accept clients, and the number that should."""
    upstream: NotRequired[dict[str, object]]
    """The state of the cluster behind a gateway."""


class Readiness:
    """Collects the state of a node's parts for /ready."""

    def __init__(
        self,
        manager: GroupMetadataManager,
        leadership: Leadership,
        loader: Loader,
        scheduler: Scheduler,
        upkeep: LogUpkeep | None,
        stats: Stats,
        clock: Clock,
    ) -> None:
        self._manager = manager
        self._leadership = leadership
        self._loader = loader
        self._scheduler = scheduler
        self._upkeep = upkeep
        self._stats = stats
        self._clock = clock

    def collect_ready_fields(self) -> NodeReadyResponse:
        """Return the fields of /ready: `ready` if most partitions are served, `complete` if all can be written, too."""
        manager, upkeep = self._manager, self._upkeep
        wrong = find_swapped_directories(manager.misplaced_placements)
        now_ms = self._clock.mono_ms()
        waiting = manager.waiting_partitions
        since_ms = self._stats.log_refusing_since_ms
        failing = [job for job in self._scheduler.jobs.values() if job.failing_since_ms]
        return {
            "ready": self._leadership.is_mostly_ready,
            "complete": self._leadership.has_loaded_all_partitions and not since_ms and not wrong,
            "log_refusing_since": since_ms / 1e3 if since_ms else None,
            "log_refusing_reason": None if upkeep is None else upkeep.refusal_reason,
            "jobs_failing_since": {job.name: job.failing_since_ms / 1e3 for job in failing},
            "partitions_owned": len(manager.owned_partitions),
            "partitions_loading": sorted(manager.loading_partitions.keys() - waiting),
            "partitions_waiting": sorted(waiting),
            "loads": {str(p): each.get_progress_fields(now_ms) for p, each in self._loader.progress.items()},
            "partitions_failed": {str(p): why for p, why in self._leadership.failed_partitions.items()},
            "partitions_in_wrong_place": {
                str(p): f"all its groups belong to partition {home}: {PUT_IN_PLACE}"
                for p, home in wrong.items()
            },
        }
