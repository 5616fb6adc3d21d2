# SPDX-License-Identifier: Apache-2.0
"""A member of a group, and its summary for DescribeGroups."""

from collections.abc import Iterable
from typing import Final, TypeAlias

import msgspec

from coordinator.groups.group_totals import text_bytes
from coordinator.groups.outcome import RequestRef
from protocol.mypyc_shim import mypyc_attr
from protocol.newtypes import MemberId

NEVER: Final = 1 << 61  # a deadline that never comes; compiled code needs no object for this number
PROTOCOL_TYPE_CONSUMER: Final = "consumer"


class MemberSummary(msgspec.Struct, frozen=True):
    """A member as DescribeGroups shows it; `metadata` belongs to the selected protocol."""

    member_id: MemberId
    group_instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


Protocols: TypeAlias = list[tuple[str, bytes]]
"""The names of the protocols that a member offers, with its metadata for each, the preferred one first."""


SHARED_PROTOCOLS_MAX: Final = 1_000
SHARED_BYTES_MAX: Final = 512
_shared_protocols: Final[dict[tuple[tuple[str, bytes], ...], Protocols]] = {}


def intern_protocols(protocols: Protocols) -> Protocols:
    """Return an equal list that must not be changed: members with the same short protocols share it."""
    if count_protocols_bytes(protocols) > SHARED_BYTES_MAX:
        return protocols
    if len(_shared_protocols) >= SHARED_PROTOCOLS_MAX:
        _shared_protocols.clear()
    return _shared_protocols.setdefault(tuple(protocols), protocols)


def count_protocols_bytes(protocols: Protocols) -> int:
    """Return the bytes that a member's protocols take, with their metadata."""
    return sum([text_bytes(name) + len(metadata) for name, metadata in protocols])


@mypyc_attr(acyclic=True)
class MemberMetadata:
    """A member of a group. `assignment` is hard state (it is in the log); the session is soft state.

    `supported_protocols` keeps the member's order of preference. `session_deadline_ms` is monotonic; a heartbeat
    changes the number and no timer.
    """

    __slots__ = (
        "assignment",
        "awaiting_join",
        "awaiting_sync",
        "client_host",
        "client_id",
        "counted_bytes",
        "group_instance_id",
        "is_new",
        "member_id",
        "protocol_type",
        "rebalance_timeout_ms",
        "session_deadline_ms",
        "session_timeout_ms",
        "supported_protocols",
    )

    def __init__(
        self,
        member_id: MemberId,
        group_instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocol_type: str,
        supported_protocols: Protocols,
        assignment: bytes = b"",
        is_new: bool = False,
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocol_type = protocol_type
        self.supported_protocols = supported_protocols
        self.assignment = assignment
        self.awaiting_join: RequestRef | None = None
        self.awaiting_sync: RequestRef | None = None
        self.is_new = is_new
        self.session_deadline_ms = NEVER
        self.counted_bytes = 0
        """The bytes that the group's `member_bytes` includes for this member."""

    @property
    def is_static_member(self) -> bool:
        """True if the member has a group.instance.id (KIP-345)."""
        return self.group_instance_id is not None

    @property
    def has_satisfied_heartbeat(self) -> bool:
        """True if the member may stay after its session deadline has passed.

        Members that wait in a join or a sync cannot send heartbeats. New members can expire while they wait:
        their client may be gone, and nothing else would show it (ClassicGroupMember.hasSatisfiedHeartbeat).
        """
        return not self.is_new and (self.awaiting_join is not None or self.awaiting_sync is not None)

    def count_bytes(self) -> int:
        """Return the bytes that clients have sent for the member: its metadata, assignment and names."""
        return (
            count_protocols_bytes(self.supported_protocols)
            + len(self.assignment)
            + text_bytes(self.member_id)
            + text_bytes(self.client_id)
            + text_bytes(self.client_host)
            + text_bytes(self.group_instance_id or "")
        )

    def metadata(self, protocol: str | None) -> bytes:
        """Return the member's metadata for `protocol`, or empty bytes if `protocol` is None.

        Raises KeyError if the member does not support it.
        """
        if protocol is None:
            return b""
        for name, metadata in self.supported_protocols:
            if name == protocol:
                return metadata
        raise KeyError(f"member {self.member_id} does not support protocol {protocol}")

    def matches(self, protocols: Iterable[tuple[str, bytes]]) -> bool:
        """Return whether the member offers exactly these protocols, in this order and with these bytes."""
        return self.supported_protocols == list(protocols)

    def summary(self, protocol: str | None) -> MemberSummary:
        """Return the member's summary, with its metadata for `protocol`; without metadata if that is None."""
        return MemberSummary(
            member_id=self.member_id,
            group_instance_id=self.group_instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            metadata=self.metadata(protocol),
            assignment=self.assignment,
        )
