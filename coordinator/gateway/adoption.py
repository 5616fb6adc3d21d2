# SPDX-License-Identifier: Apache-2.0
"""Takes a group over, with its offsets, before a client joins it, or commits in it without being a member.

Groups that are known to be ours are remembered; a group that was given back is forgotten. All requests for a group
that is being taken over wait for the same attempt. A group that cannot be taken over now (it lives at the cluster, or
the cluster does not answer) is refused, and is tried again after a moment. `refused_takeover_errors` has the errors.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection
from typing import Final, NamedTuple

from coordinator.cluster_requests.model import ClusterGroupState
from coordinator.cluster_requests.retrying import RefusedByCluster, RetryLater
from coordinator.gateway.refused_takeover_errors import (
    PASS,
    TakeoverErrors,
    get_errors_for_adopt_result,
    make_join_commit_errors,
)
from coordinator.gateway.routing_types import TakeoverRequester
from coordinator.migration.model import AdoptResult, AdoptStatus
from coordinator.migration.protocol import AdoptionTarget, ClusterCoordinator, adopt_group
from coordinator.runtime.promise import Promise
from coordinator.runtime.tasks import Tasks
from coordinator.telemetry.incidents import Incidents
from coordinator.telemetry.logs import get_logger
from coordinator.upstream.errors import UpstreamError
from protocol.bounds import REMEMBERED_NAME_MAX
from protocol.errors import ErrorCode
from protocol.newtypes import GroupId

log = get_logger("adoption")

AT_A_TIME: Final = 16
"""The limit of groups that one process takes over at a time."""
REFUSED_MS: Final = 500
"""The time for which a group that cannot be taken over is refused without another attempt."""
WAITED_MS: Final = 10_000
"""The time for which a group that stays at the cluster counts as waited for after a client has asked for it."""
KNOWN_MAX: Final = 500_000
OUTCOMES: Final = ("adopted", "already", "vacant", "live", "failed")
REFUSED_MAX: Final = 10_000
_COUNTED: Final = {
    AdoptStatus.BUSY: "failed",
    AdoptStatus.SHARE: "live",
    AdoptStatus.CONFIRMED_ABSENT: "vacant",
}
_STAYS: Final = {
    AdoptStatus.LIVE: "a group has members at the cluster, and stays there until they are gone",
    AdoptStatus.SHARE: "a share group of this id is at the cluster, and stays there",
}
"""The log messages for groups that are not taken over because of their state at the cluster."""


class AwaitedCounts(NamedTuple):
    """The number of groups that clients wait for, and of the members that these groups have at the cluster."""

    groups: int
    members: int


class Adoption:
    """Takes groups over from `there` to `here`; PermissionGate calls `adopt`."""

    def __init__(
        self,
        here: AdoptionTarget,
        there: ClusterCoordinator,
        tasks: Tasks,
        mono_ms: Callable[[], int],
        *,
        take_live: bool,
    ) -> None:
        """Take groups with members at the cluster, too, if `take_live`."""
        self._here = here
        self._there = there
        self._tasks = tasks
        self._mono_ms = mono_ms
        self._take_live = take_live
        self.counts: Counter[str] = Counter(dict.fromkeys(OUTCOMES, 0))
        """The attempts by outcome: taken over, already ours, in neither place, live at the cluster, or failed."""
        self._known: set[GroupId] = set()
        self._waiting: dict[GroupId, list[Promise[TakeoverErrors]]] = {}
        self._given_back: set[GroupId] = set()  # while their takeover was under way
        self._refused: dict[
            GroupId, tuple[TakeoverErrors, int]
        ] = {}  # with the millisecond until which it counts
        self._waited_for: dict[
            GroupId, tuple[int, int]
        ] = {}  # members, and the millisecond until which it counts
        self._places = asyncio.Semaphore(AT_A_TIME)
        self._incidents = Incidents(log, mono_ms, "warning")

    async def adopt(self, group: str, requester: TakeoverRequester) -> ErrorCode:
        """Return NONE once the group is ours, or the error for the request; known groups need no wait."""
        group_id = GroupId(group)
        if group_id in self._known:
            return ErrorCode.NONE
        refusal, until_ms = self._refused.get(group_id, (PASS, 0))
        if until_ms <= self._mono_ms():
            refusal = await self._begin(group_id, requester)
        return refusal.error_for_api(requester.api_key)

    def is_known_as_ours(self, group: str) -> bool:
        """Return whether the group is known to be ours."""
        return group in self._known

    def forget_given_back_groups(self, groups: Collection[str]) -> None:
        """Forget groups that were given back to the cluster."""
        self._known.difference_update(map(GroupId, groups))
        self._given_back.update(GroupId(group) for group in groups if group in self._waiting)

    def count_wanted_groups_left_at_cluster(self) -> AwaitedCounts:
        """Count the groups that clients have recently tried to join, and that stay at the cluster."""
        now_ms = self._mono_ms()
        self._waited_for = {group: waited for group, waited in self._waited_for.items() if waited[1] > now_ms}
        members = sum(members for members, _ in self._waited_for.values())
        return AwaitedCounts(len(self._waited_for), members)

    def _wait_for(self, group: GroupId, members: int) -> None:
        self._waited_for.pop(group, None)  # the newest comes last
        if len(self._waited_for) >= REFUSED_MAX:
            del self._waited_for[next(iter(self._waited_for))]
        self._waited_for[group] = (members, self._mono_ms() + WAITED_MS)

    def _begin(self, group: GroupId, requester: TakeoverRequester) -> Promise[TakeoverErrors]:
        """Take a group over, unless that is under way already."""
        if group not in self._waiting:
            self._waiting[group] = []
            self._tasks.start(self._take(group, requester), "adopt a group")
        promise: Promise[TakeoverErrors] = Promise(requester.wake)
        self._waiting[group].append(promise)
        return promise

    async def _take(self, group: GroupId, requester: TakeoverRequester) -> None:
        refusal, outcome = make_join_commit_errors(ErrorCode.COORDINATOR_NOT_AVAILABLE), None
        try:
            async with self._places:
                refusal, outcome = await self._adopt(group, requester)
        finally:
            self._note(group, refusal, outcome)
            for promise in self._waiting.pop(group):
                promise.resolve(refusal)

    def _note(self, group: GroupId, refusal: TakeoverErrors, outcome: AdoptStatus | None) -> None:
        if group in self._given_back:  # the result may be older than the return: the next request tries again
            self._given_back.discard(group)
            return
        # The result counts for these requests only, and not for later ones.
        if outcome is AdoptStatus.CONFIRMED_ABSENT or len(group) > REMEMBERED_NAME_MAX:
            return
        if refusal is PASS:
            if len(self._known) >= KNOWN_MAX:
                self._known.clear()
            self._known.add(group)
            self._refused.pop(group, None)
            return
        self._forget_refusals()
        self._refused.pop(group, None)  # the newest comes last
        self._refused[group] = (refusal, self._mono_ms() + REFUSED_MS)

    def _forget_refusals(self) -> None:
        """Forget refusals that have expired, and the oldest ones if there are too many."""
        now_ms = self._mono_ms()
        while self._refused:
            group = next(iter(self._refused))
            if self._refused[group][1] > now_ms and len(self._refused) < REFUSED_MAX:
                return
            del self._refused[group]

    async def _adopt(
        self, group: GroupId, requester: TakeoverRequester
    ) -> tuple[TakeoverErrors, AdoptStatus | None]:
        """Return PASS once the group may be served, else the error for clients, who retry if waiting helps."""
        try:
            result = await adopt_group(self._here, self._there, group, take_live=self._take_live)
        except UpstreamError as error:
            self.counts["failed"] += 1
            self._incidents.log_repeated_failure(
                group, "a group cannot be taken over now", group=group, reason=str(error)
            )
            return make_join_commit_errors(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), None
        except (RetryLater, RefusedByCluster) as error:
            code = ErrorCode(error.code)
            # For an id that no group can have, the coordinator itself returns the error.
            return PASS if code is ErrorCode.INVALID_GROUP_ID else make_join_commit_errors(code), None
        except OSError as error:
            self.counts["failed"] += 1
            self._incidents.log_repeated_failure(
                group, "a coordinator does not answer", group=group, reason=str(error)
            )
            return make_join_commit_errors(ErrorCode.COORDINATOR_NOT_AVAILABLE), None
        self._count(group, result)
        if result.outcome is AdoptStatus.ADOPTED:
            log.info(
                "a group was taken over",
                group=group,
                offsets=len(result.offsets),
                client_id=requester.client_id,
                peer=requester.peer_name,
            )
        return get_errors_for_adopt_result(result), result.outcome

    def _count(self, group: GroupId, result: AdoptResult) -> None:
        outcome = result.outcome
        self.counts[_COUNTED.get(outcome, outcome.name.lower())] += 1
        if outcome in _STAYS:
            state = result.state or ClusterGroupState.none()
            self._incidents.log_repeated_failure(
                group, _STAYS[outcome], group=group, kind=state.kind, members=state.members
            )
            self._wait_for(group, state.members)
            return
        self._waited_for.pop(group, None)
        if outcome.may_be_served:
            self._incidents.end_incident(group, "a group can be served again", group=group)
