# SPDX-License-Identifier: Apache-2.0
"""The details of one group: the questions, the answers, and how those of several nodes become one. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar

import msgspec

from coordinator.groups.rebalance_timings import RebalanceTimings
from coordinator.overview.group_list import UnservedPart
from coordinator.overview.paging import LIMIT_DEFAULT, check_limit

ASSIGNED_PARTITIONS_MAX: Final = 1_000
"""The most partitions that are listed of one member."""
ASSIGNMENT_CHARACTERS_MAX: Final = 50_000
"""The most characters that the topics of one member's assignment have, which the member's leader chooses."""
CHARACTERS_PER_PARTITION: Final = 6

T = TypeVar("T")
_AFTER_OFFSET: Final = re.compile(r"([0-9]{1,10}):(.*)", re.DOTALL)


class DetailsQuery(msgspec.Struct, frozen=True, tag=True):
    """Asks for what is known of a group as a whole."""

    group: str


class MembersQuery(msgspec.Struct, frozen=True, tag=True):
    """Asks for a page of a group's members: those after the member id `after`. Raises ValueError for a wrong limit."""

    group: str
    limit: int = LIMIT_DEFAULT
    after: str = ""

    def __post_init__(self) -> None:
        """Check what the types do not say."""
        check_limit(self.limit)


class OffsetsQuery(msgspec.Struct, frozen=True, tag=True):
    """Asks for a page of a group's offsets: those after a topic and partition. Raises ValueError for a wrong limit."""

    group: str
    limit: int = LIMIT_DEFAULT
    after: tuple[str, int] | None = None

    def __post_init__(self) -> None:
        """Check what the types do not say."""
        check_limit(self.limit)


GroupQuery = DetailsQuery | MembersQuery | OffsetsQuery


class RunningRebalance(msgspec.Struct, frozen=True):
    """The rebalance that is under way; it began at `began_ms`, in Unix milliseconds, and `awaited` members are late."""

    began_ms: int
    cause: str
    awaited: int


class EndedRebalance(msgspec.Struct, frozen=True):
    """A rebalance that is over. `began_ms` is in Unix milliseconds, the other times are in milliseconds.

    `slowest_member` is the one that the group waited for longest, `slowest_member_ms` is for how long it waited for
    this one alone. The generation is the new one; a group that became empty has no leader.
    """

    began_ms: int
    duration_ms: int
    cause: str
    generation: int
    members: int
    slowest_member: str
    slowest_member_host: str
    slowest_member_ms: int
    leader: str
    assignment_ms: int


def describe_ended_rebalance(timings: RebalanceTimings) -> EndedRebalance:
    """Return the description of a rebalance that has ended."""
    return EndedRebalance(
        began_ms=timings.ended_wall_ms - timings.total_duration_ms,
        duration_ms=timings.total_duration_ms,
        cause=timings.cause.value,
        generation=timings.generation_id,
        members=timings.member_count,
        slowest_member=timings.slowest_member_id,
        slowest_member_host=timings.slowest_host,
        slowest_member_ms=timings.slowest_member_ms,
        leader=timings.leader_id,
        assignment_ms=timings.assignment_ms,
    )


class GroupFacts(msgspec.Struct, frozen=True):
    """A group as a whole, with its last rebalances, the newest first. `members` and `offsets` are their numbers.

    `protocol` is the one that the members have chosen, for consumers a partition assignor; `leader` is the member that
    makes the assignments.
    """

    group: str
    state: str
    type: str
    protocol_type: str
    protocol: str
    generation: int
    leader: str
    members: int
    offsets: int
    lag: int | None
    partition: int
    node: int
    rebalance: RunningRebalance | None
    rebalances: list[EndedRebalance]


class MemberRow(msgspec.Struct, frozen=True):
    """A member. `awaited` is True while the group waits for it in a rebalance.

    `partitions` counts those assigned to it, the first ASSIGNED_PARTITIONS_MAX of which `assignment` lists by topic;
    both are None if the assignment is not one of Kafka's consumers, or is too large to be decoded.
    """

    member: str
    instance: str | None
    client: str
    host: str
    awaited: bool
    partitions: int | None
    assignment: dict[str, list[int]] | None

    @property
    def characters(self) -> int:
        """The length of what is shown."""
        names = len(self.member) + len(self.instance or "") + len(self.client) + len(self.host)
        assigned = (self.assignment or {}).items()
        return names + sum(
            len(topic) + CHARACTERS_PER_PARTITION * len(partitions) for topic, partitions in assigned
        )


class MembersPage(msgspec.Struct, frozen=True):
    """A page of a group's members in the order of their ids; `total` counts all of them."""

    members: list[MemberRow]
    next: str | None
    total: int


class OffsetRow(msgspec.Struct, frozen=True):
    """A committed offset, and how far it is behind the end of its partition; both are None if that is not known.

    `committed_ms` is in Unix milliseconds, `leader_epoch` None if the client gave none.
    """

    topic: str
    partition: int
    offset: int
    leader_epoch: int | None
    metadata: str
    committed_ms: int
    end: int | None
    lag: int | None

    @property
    def characters(self) -> int:
        """The length of its texts."""
        return len(self.topic) + len(self.metadata)


class OffsetsPage(msgspec.Struct, frozen=True):
    """A page of a group's offsets in the order of topic and partition; `total` counts all of them."""

    offsets: list[OffsetRow]
    next: str | None
    total: int


class GroupNotFound(msgspec.Struct, frozen=True):
    """No node has the group; if its partition could not be asked, `missing` says why."""

    missing: list[UnservedPart]


GroupAnswer = GroupFacts | MembersPage | OffsetsPage | GroupNotFound


class _Encoded(msgspec.Struct, Generic[T]):
    found: T | None
    not_found: GroupNotFound | None


_DECODERS: Final[Mapping[type[GroupQuery], msgspec.msgpack.Decoder[_Encoded[Any]]]] = {
    DetailsQuery: msgspec.msgpack.Decoder(_Encoded[GroupFacts]),
    MembersQuery: msgspec.msgpack.Decoder(_Encoded[MembersPage]),
    OffsetsQuery: msgspec.msgpack.Decoder(_Encoded[OffsetsPage]),
}


def encode_group_answer(answer: GroupAnswer) -> bytes:
    """Return an answer for another process."""
    not_found = answer if isinstance(answer, GroupNotFound) else None
    return msgspec.msgpack.encode(_Encoded(None if not_found else answer, not_found))


def decode_group_answer(query: GroupQuery, encoded: bytes) -> GroupAnswer:
    """Return another node's answer to a query."""
    answer = _DECODERS[type(query)].decode(encoded)
    found: GroupAnswer | None = answer.found
    return found or answer.not_found or GroupNotFound([])


def format_offset_position(row: OffsetRow) -> str:
    """Return the place of an offset as text for an address."""
    return f"{row.partition}:{row.topic}"


def parse_offset_position(text: str) -> tuple[str, int]:
    """Return the topic and partition of a text that `format_offset_position` has made. Raises ValueError."""
    match = _AFTER_OFFSET.fullmatch(text)
    if match is None:
        raise ValueError("after: expected the `next` of another page")
    return match[2], int(match[1])


def cut_assignment(assignment: Mapping[str, Sequence[int]]) -> dict[str, list[int]]:
    """Return the partitions by topic in order, without those that are too many to be shown."""
    shown: dict[str, list[int]] = {}
    partitions = characters = 0
    for topic in sorted(assignment):
        characters += len(topic)
        if partitions == ASSIGNED_PARTITIONS_MAX or characters > ASSIGNMENT_CHARACTERS_MAX:
            break
        shown[topic] = sorted(assignment[topic])[: ASSIGNED_PARTITIONS_MAX - partitions]
        partitions += len(shown[topic])
    return shown


def merge_group_answers(answers: Iterable[GroupAnswer], missing: Sequence[UnservedPart]) -> GroupAnswer:
    """Return the answer of the node that has the group; `missing` are the parts that could not be asked."""
    parts = list(missing)
    for answer in answers:
        if not isinstance(answer, GroupNotFound):
            return answer
        parts += answer.missing
    return GroupNotFound(parts)
