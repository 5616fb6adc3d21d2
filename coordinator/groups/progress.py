# SPDX-License-Identifier: Apache-2.0
"""Why a rebalance began, how long it takes, and for whom it waited: soft state, for metrics and the log alone."""

import enum


class RebalanceCause(enum.Enum):
    """Why a rebalance began; the label of a metric, so the set is fixed."""

    MEMBER_JOINED = "member_joined"
    MEMBER_REJOINED = "member_rejoined"
    LEADER_REJOINED = "leader_rejoined"
    METADATA_CHANGED = "metadata_changed"
    STATIC_MEMBER_REPLACED = "static_member_replaced"
    MEMBER_LEFT = "member_left"
    SESSION_EXPIRED = "session_expired"
    SYNC_EXPIRED = "sync_expired"
    OVER_CAPACITY = "over_capacity"
    STORE_FAILED = "store_failed"

    __hash__ = (
        object.__hash__
    )  # Enum's own is written in Python, and each rebalance asks for it a dozen times


class RebalanceProgress:
    """One rebalance, from its begin to the assignment that ends it. All times in monotonic milliseconds.

    One that has to begin anew before it is over goes on under its first cause: its members have done no work meanwhile.
    """

    __slots__ = (
        "_joined_ms",
        "_last_gap_ms",
        "began_ms",
        "cause",
        "ended_ms",
        "formed_ms",
        "slowest_join_ms",
    )

    def __init__(self, cause: RebalanceCause, began_ms: int) -> None:
        self.cause = cause
        self.began_ms = began_ms
        self.formed_ms = began_ms
        """When the newest generation of it was formed, which the leader has to assign to."""
        self.ended_ms = began_ms
        self.slowest_join_ms = 0
        """By how much the last member to rejoin, or one that did not come, was later than all others."""
        self._joined_ms = began_ms
        self._last_gap_ms = 0

    def joined(self, now_ms: int) -> None:
        """A member has rejoined."""
        self._last_gap_ms = now_ms - self._joined_ms
        self._joined_ms = now_ms

    def begun_again(self, now_ms: int) -> None:
        """Before it was over all members have to rejoin once more."""
        self._joined_ms = now_ms
        self._last_gap_ms = 0

    def formed(self, now_ms: int, *, waited: bool = True) -> None:
        """The joins are answered; not `waited` when a set delay has ended, or no member is left."""
        if waited:
            self.slowest_join_ms += now_ms - self._joined_ms or self._last_gap_ms
        self.formed_ms = now_ms

    def ended(self, now_ms: int) -> None:
        """The leader has brought the assignment, or no member is left; where the log refuses that, it goes on."""
        self.ended_ms = now_ms

    @property
    def duration_ms(self) -> int:
        """From its begin to its end."""
        return self.ended_ms - self.began_ms

    @property
    def assignment_ms(self) -> int:
        """How long the leader took for the assignment."""
        return self.ended_ms - self.formed_ms
