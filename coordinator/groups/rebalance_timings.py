# SPDX-License-Identifier: Apache-2.0
"""The cause and the times of a rebalance: soft state, only for metrics, the node's log lines and the overview."""

import enum


class RebalanceCause(enum.Enum):
    """The cause of a rebalance; it is the label of a metric, so the set is fixed."""

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

    __hash__ = object.__hash__  # Enum's own is written in Python, and each rebalance calls it a dozen times


class RebalanceTimings:
    """The times of one rebalance, from its start to the assignment that ends it, in monotonic milliseconds.

    If a rebalance starts again before it has completed, the first cause counts: its members have done no work since.
    """

    __slots__ = (
        "_joined_ms",
        "_last_awaited",
        "_last_gap_ms",
        "began_ms",
        "cause",
        "ended_ms",
        "ended_wall_ms",
        "formed_ms",
        "generation_id",
        "leader_id",
        "member_count",
        "slowest_host",
        "slowest_join_ms",
        "slowest_member_id",
        "slowest_member_ms",
    )

    def __init__(self, cause: RebalanceCause, began_ms: int) -> None:
        self.cause = cause
        self.began_ms = began_ms
        self.formed_ms = began_ms
        """The moment at which its newest generation was formed, for which the leader makes the assignment."""
        self.ended_ms = began_ms
        self.ended_wall_ms = 0
        """The end in Unix milliseconds."""
        self.generation_id = 0
        """The number of the generation that the rebalance has led to."""
        self.member_count = 0
        """The number of members of that generation."""
        self.slowest_join_ms = 0
        """The time by which the last member to rejoin, or one that did not, was later than all others.

        It is the sum of all rounds in which the members had to rejoin.
        """
        self.slowest_member_id = ""
        """The member, or the id given out to one, that the group waited for longest; empty if it did not wait."""
        self.slowest_member_ms = 0
        """The time by which that member was later than all others."""
        self.slowest_host = ""
        """The host of that member; empty if it is not known."""
        self.leader_id = ""
        """The member that makes the assignment; empty before a generation is formed."""
        self._joined_ms = began_ms
        self._last_gap_ms = 0
        self._last_awaited = ("", "")

    def note_rejoined(self, now_ms: int, member_id: str, host: str) -> None:
        """Note that a member has rejoined."""
        self._last_gap_ms = now_ms - self._joined_ms
        self._joined_ms = now_ms
        self.note_awaited(member_id, host)

    def note_awaited(self, member_id: str, host: str) -> None:
        """Note that the group need not wait any longer for a member: it has rejoined, has gone, or is left out."""
        self._last_awaited = (member_id, host)

    def restart_join_times(self, now_ms: int) -> None:
        """Note that all members have to rejoin once more before the rebalance has ended."""
        self._joined_ms = now_ms
        self._last_gap_ms = 0

    def note_formed(self, now_ms: int, leader_id: str, *, waited: bool = True) -> None:
        """Note that the generation is formed; `waited` is False after the initial delay, or if no member is left."""
        if waited:
            gap_ms = now_ms - self._joined_ms or self._last_gap_ms
            self.slowest_join_ms += gap_ms
            if gap_ms > self.slowest_member_ms:
                self.slowest_member_ms = gap_ms
                self.slowest_member_id, self.slowest_host = self._last_awaited
        self.leader_id = leader_id
        self.formed_ms = now_ms

    def note_rebalance_ended(
        self, now_ms: int, wall_ms: int, *, generation_id: int, member_count: int
    ) -> None:
        """Note the end: an assignment, or no member left. If the record of that is refused, the rebalance goes on."""
        self.ended_ms = now_ms
        self.ended_wall_ms = wall_ms
        self.generation_id = generation_id
        self.member_count = member_count

    @property
    def total_duration_ms(self) -> int:
        """The time from the start of the rebalance to its end."""
        return self.ended_ms - self.began_ms

    @property
    def assignment_ms(self) -> int:
        """The time that the leader took for the assignment."""
        return self.ended_ms - self.formed_ms
