# SPDX-License-Identifier: Apache-2.0
"""The classic groups of the model cluster: at most one member each (`group.max.size=1`), and committed offsets."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any, NamedTuple
from uuid import UUID

from protocol.errors import ErrorCode

NO_OFFSET = -1
MEMBER_ID_REQUIRED_FROM = 4
NO_PROTOCOL_FROM = 7
NOT_FOUND_FROM = 6
"""DescribeGroups has an error for a group that there is not (KIP-1043)."""

Place = tuple[str, int]
"""topic, partition"""


class Committed(NamedTuple):
    """A committed offset."""

    offset: int
    leader_epoch: int
    metadata: str


@dataclass(slots=True)
class Member:
    """A member, until its session ends."""

    member_id: str
    client_id: str
    protocols: Mapping[str, bytes]
    session_s: float
    since_s: float
    until_s: float
    assignment: bytes = b""


@dataclass(slots=True)
class Group:
    """One group."""

    group_id: str
    offsets: dict[Place, Committed] = field(default_factory=dict)
    generation: int = 0
    protocol_type: str = ""
    protocol: str = ""
    member: Member | None = None
    is_synced: bool = False
    left_s: float = -inf
    """When the newest member left."""

    def free_since(self) -> float:
        """Since when it has no member; for ever if there never was one."""
        return inf if self.member is not None else self.left_s

    @property
    def state(self) -> str:
        """In Kafka's words."""
        if self.member is None:
            return "Empty"
        return "Stable" if self.is_synced else "CompletingRebalance"


class Groups:
    """All groups, whichever broker coordinates them."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._groups: dict[str, Group] = {}
        self._given_out: set[tuple[str, str]] = set()
        self._count = 0

    def get(self, group_id: str) -> Group | None:
        """The group as it is now; one whose last member is gone and that has no offsets is gone, too."""
        group = self._groups.get(group_id)
        if group is not None and group.member is not None and group.member.until_s <= self._now_s():
            group.left_s, group.member = group.member.until_s, None
        return group

    def all(self) -> list[Group]:
        """All that there are."""
        return [group for name in list(self._groups) if (group := self.get(name)) is not None]

    # --- members ---

    def hold(self, group_id: str) -> None:
        """Let a group have a member that stays for ever."""
        group = self._new(group_id)
        group.member = Member("holder", "holder", {"range": b""}, inf, self._now_s(), inf)
        group.generation, group.protocol_type, group.protocol, group.is_synced = 1, "consumer", "range", True

    def join(self, request: Any, version: int, client_id: str) -> dict[str, Any]:
        """JoinGroup."""
        if not request.group_id:
            return not_joined(request, version, ErrorCode.INVALID_GROUP_ID)
        group = self.get(request.group_id)
        protocols = {each.name: each.metadata for each in request.protocols}
        if not protocols or not request.protocol_type:
            return not_joined(request, version, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if not request.member_id:
            if group is not None and group.member is not None:
                return not_joined(request, version, ErrorCode.GROUP_MAX_SIZE_REACHED)
            self._count += 1
            member_id = f"{client_id}-{UUID(int=self._count)}"
            if version >= MEMBER_ID_REQUIRED_FROM and request.group_instance_id is None:
                self._given_out.add((request.group_id, member_id))
                return not_joined(request, version, ErrorCode.MEMBER_ID_REQUIRED) | {"member_id": member_id}
        elif self._is_known(group, request):
            member_id = request.member_id
        else:
            return not_joined(request, version, ErrorCode.UNKNOWN_MEMBER_ID)
        return self._joined(group or self._new(request.group_id), member_id, client_id, protocols, request)

    def _is_known(self, group: Group | None, request: Any) -> bool:
        if group is not None and group.member is not None:
            return bool(group.member.member_id == request.member_id)
        return (request.group_id, request.member_id) in self._given_out

    def _joined(
        self, group: Group, member_id: str, client_id: str, protocols: Mapping[str, bytes], request: Any
    ) -> dict[str, Any]:
        session_s = request.session_timeout_ms / 1000
        now_s = self._now_s()
        group.member = Member(member_id, client_id, protocols, session_s, now_s, now_s + session_s)
        group.generation += 1
        group.is_synced = False
        group.protocol_type, group.protocol = request.protocol_type, next(iter(protocols))
        self._given_out.discard((group.group_id, member_id))
        return {
            "error_code": 0,
            "generation_id": group.generation,
            "protocol_type": group.protocol_type,
            "protocol_name": group.protocol,
            "leader": member_id,
            "member_id": member_id,
            "members": [
                {"member_id": member_id, "group_instance_id": None, "metadata": protocols[group.protocol]}
            ],
        }

    def sync(self, request: Any) -> dict[str, Any]:
        """SyncGroup."""
        group = self.get(request.group_id)
        error = self._error_of_member(group, request.member_id, request.generation_id)
        if error or group is None or group.member is None:
            return {"error_code": int(error), "protocol_type": None, "protocol_name": None, "assignment": b""}
        for each in request.assignments:
            group.member.assignment = each.assignment
        group.is_synced = True
        self._renew(group)
        return {
            "error_code": 0,
            "protocol_type": group.protocol_type,
            "protocol_name": group.protocol,
            "assignment": group.member.assignment,
        }

    def heartbeat(self, request: Any) -> ErrorCode:
        """Heartbeat."""
        if not request.group_id:
            return ErrorCode.INVALID_GROUP_ID
        group = self.get(request.group_id)
        error = self._error_of_member(group, request.member_id, request.generation_id)
        if group is not None and not error:
            self._renew(group)
        return error

    def leave(self, group_id: str, member_id: str) -> ErrorCode:
        """LeaveGroup, of one member."""
        group = self.get(group_id)
        if group is None or group.member is None or group.member.member_id != member_id:
            return ErrorCode.UNKNOWN_MEMBER_ID
        group.left_s, group.member = self._now_s(), None
        group.generation += 1
        return ErrorCode.NONE

    def _renew(self, group: Group) -> None:
        if group.member is not None:
            group.member.until_s = self._now_s() + group.member.session_s

    def _error_of_member(self, group: Group | None, member_id: str, generation: int) -> ErrorCode:
        if group is None or group.member is None or group.member.member_id != member_id:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if group.generation == generation else ErrorCode.ILLEGAL_GENERATION

    # --- offsets ---

    def may_commit(self, group_id: str, member_id: str, generation: int) -> ErrorCode:
        """Whether a commit is taken (ClassicGroup.validateOffsetCommit)."""
        group = self.get(group_id)
        if group is None:
            return ErrorCode.NONE if generation < 0 else ErrorCode.ILLEGAL_GENERATION
        if generation < 0 and group.member is None:
            return ErrorCode.NONE
        error = self._error_of_member(group, member_id, generation)
        if not error:
            self._renew(group)
            if not group.is_synced:
                return ErrorCode.REBALANCE_IN_PROGRESS
        return error

    def commit(self, group_id: str, offsets: Mapping[Place, Committed]) -> None:
        """Store offsets."""
        if offsets:
            (self.get(group_id) or self._new(group_id)).offsets.update(offsets)

    def delete(self, group_id: str) -> ErrorCode:
        """DeleteGroups, of one group."""
        group = self.get(group_id)
        if group is None:
            return ErrorCode.GROUP_ID_NOT_FOUND
        if group.member is not None:
            return ErrorCode.NON_EMPTY_GROUP
        del self._groups[group_id]
        return ErrorCode.NONE

    def delete_offset(self, group: Group, place: Place) -> ErrorCode:
        """OffsetDelete, of one partition."""
        if group.member is not None:
            return ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
        group.offsets.pop(place, None)
        return ErrorCode.NONE

    def topic_is_gone(self, topic: str) -> None:
        """Offsets of a deleted topic go with it."""
        for group in self.all():
            for place in [place for place in group.offsets if place[0] == topic]:
                del group.offsets[place]

    # --- what is shown ---

    def described(self, group_id: str, version: int) -> dict[str, Any]:
        """A group of DescribeGroups."""
        group = self.get(group_id)
        shown: dict[str, Any] = {
            "group_id": group_id,
            "protocol_type": "",
            "protocol_data": "",
            "members": [],
        }
        if group is None:
            if version < NOT_FOUND_FROM:
                return shown | {"error_code": 0, "group_state": "Dead"}
            message = f"Group {group_id} not found."
            error = int(ErrorCode.GROUP_ID_NOT_FOUND)
            return shown | {"error_code": error, "error_message": message, "group_state": "Dead"}
        shown |= {"error_code": 0, "group_state": group.state, "protocol_type": group.protocol_type}
        if group.member is not None:
            shown["members"] = [self._described(group.member, group)]
            shown["protocol_data"] = group.protocol if group.is_synced else ""
        return shown

    def _described(self, member: Member, group: Group) -> dict[str, Any]:
        return {
            "member_id": member.member_id,
            "group_instance_id": None,
            "client_id": member.client_id,
            "client_host": "/127.0.0.1",
            "member_metadata": member.protocols[group.protocol] if group.is_synced else b"",
            "member_assignment": member.assignment if group.is_synced else b"",
        }

    def _new(self, group_id: str) -> Group:
        group = self._groups[group_id] = Group(group_id)
        return group


def not_joined(request: Any, version: int, error: ErrorCode) -> dict[str, Any]:
    """The answer to a JoinGroup that is refused."""
    return {
        "error_code": int(error),
        "generation_id": -1,
        "protocol_type": None,
        "protocol_name": None if version >= NO_PROTOCOL_FROM else "",
        "leader": "",
        "member_id": request.member_id,
        "members": [],
    }
