# SPDX-License-Identifier: Apache-2.0
# Generated from Apache Kafka's message schemas by `python -m protocol.codegen`. Do not edit.
# fmt: off
"""SyncGroup v0-v5: the request and the response, both ways."""

from collections.abc import Callable, Generator
from struct import Struct, error
from typing import Final

from protocol.apis import ApiKey
from protocol.codec import ApiSchema, Codec
from protocol.compiled_struct import EMPTY, FieldsValue
from protocol.errors import Truncated
from protocol.fixed_integers import int32_at
from protocol.mypyc_shim import mypyc_attr
from protocol.newtypes import GroupId, MemberId
from protocol.wire import (
    NULL_INT16,
    PACK_INT32,
    UVARINT,
    bad_count_error,
    bad_length_error,
    item_limit_error,
    pack_bytes,
    pack_compact_bytes,
    pack_compact_string,
    pack_int32,
    pack_partition_error,
    pack_string,
    pack_uvarint,
    read_compact_bytes,
    read_compact_count,
    read_compact_nullable_string,
    read_compact_string,
    skip_tags,
    text_at,
)

_UNPACK_h: Final[Callable[[bytes, int], tuple[int]]] = Struct(">h").unpack_from
_UNPACK_hi: Final[Callable[[bytes, int], tuple[int, int]]] = Struct(">hi").unpack_from
_UNPACK_i: Final[Callable[[bytes, int], tuple[int]]] = Struct(">i").unpack_from
_UNPACK_ih: Final[Callable[[bytes, int], tuple[int, int]]] = Struct(">ih").unpack_from
_UNPACK_ihB: Final[Callable[[bytes, int], tuple[int, int, int]]] = Struct(">ihB").unpack_from
_UNPACK_ihi: Final[Callable[[bytes, int], tuple[int, int, int]]] = Struct(">ihi").unpack_from
_PACK_h: Final[Callable[..., bytes]] = Struct(">h").pack


@mypyc_attr(acyclic=True)
class SyncGroupRequestAssignment(FieldsValue):
    __match_args__: Final = ("member_id", "assignment",)
    __slots__ = __match_args__

    def __init__(
        self,
        member_id: MemberId = MemberId(""),
        assignment: bytes = b"",
    ) -> None:
        self.member_id: Final = member_id
        self.assignment: Final = assignment


@mypyc_attr(acyclic=True)
class SyncGroupRequest(FieldsValue):
    __match_args__: Final = ("group_id", "generation_id", "member_id", "group_instance_id", "protocol_type", "protocol_name", "assignments",)
    __slots__ = __match_args__

    def __init__(
        self,
        group_id: GroupId = GroupId(""),
        generation_id: int = 0,
        member_id: MemberId = MemberId(""),
        group_instance_id: str | None = None,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        assignments: list[SyncGroupRequestAssignment] = EMPTY,
    ) -> None:
        self.group_id: Final = group_id
        self.generation_id: Final = generation_id
        self.member_id: Final = member_id
        self.group_instance_id: Final = group_instance_id
        self.protocol_type: Final = protocol_type
        self.protocol_name: Final = protocol_name
        self.assignments: Final = assignments if assignments is not EMPTY else []


@mypyc_attr(acyclic=True)
class SyncGroupResponse(FieldsValue):
    __match_args__: Final = ("throttle_time_ms", "error_code", "protocol_type", "protocol_name", "assignment",)
    __slots__ = __match_args__

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        assignment: bytes = b"",
    ) -> None:
        self.throttle_time_ms: Final = throttle_time_ms
        self.error_code: Final = error_code
        self.protocol_type: Final = protocol_type
        self.protocol_name: Final = protocol_name
        self.assignment: Final = assignment


def decode_request_v0(buf: bytes, pos: int) -> SyncGroupRequest:
    size = len(buf)
    items = 0
    try:
        (n,) = _UNPACK_h(buf, pos)
        pos += 2
        if n >= 0:
            end = pos + n
            group_id = text_at(buf, pos, end)
            pos = end
        else:
            raise bad_length_error(n, "group_id")
        generation_id, n = _UNPACK_ih(buf, pos)
        pos += 6
        if n >= 0:
            end = pos + n
            member_id = text_at(buf, pos, end)
            pos = end
        else:
            raise bad_length_error(n, "member_id")
        (n,) = _UNPACK_i(buf, pos)
        pos += 4
        assignments_count = n
        if not 0 <= assignments_count * 6 <= size - pos:
            raise bad_count_error(assignments_count, "assignments", size - pos)
        items += assignments_count
        if items > 50000:
            raise item_limit_error("assignments", 50000)
        assignments: list[SyncGroupRequestAssignment] = []
        for _ in range(assignments_count):
            (n,) = _UNPACK_h(buf, pos)
            pos += 2
            if n >= 0:
                end = pos + n
                assignment_member_id = text_at(buf, pos, end)
                pos = end
            else:
                raise bad_length_error(n, "member_id")
            (n,) = _UNPACK_i(buf, pos)
            pos += 4
            if n >= 0:
                end = pos + n
                assignment_assignment = buf[pos:end]
                pos = end
            else:
                raise bad_length_error(n, "assignment")
            assignments.append(SyncGroupRequestAssignment(MemberId(assignment_member_id), assignment_assignment))
    except (IndexError, error):
        raise Truncated("SyncGroupRequest") from None
    if pos > len(buf):
        raise Truncated("SyncGroupRequest")
    return SyncGroupRequest(GroupId(group_id), generation_id, MemberId(member_id), None, None, None, assignments)


decode_request_v1 = decode_request_v0


decode_request_v2 = decode_request_v0


def decode_request_v3(buf: bytes, pos: int) -> SyncGroupRequest:
    size = len(buf)
    items = 0
    try:
        (n,) = _UNPACK_h(buf, pos)
        pos += 2
        if n >= 0:
            end = pos + n
            group_id = text_at(buf, pos, end)
            pos = end
        else:
            raise bad_length_error(n, "group_id")
        generation_id, n = _UNPACK_ih(buf, pos)
        pos += 6
        if n >= 0:
            end = pos + n
            member_id = text_at(buf, pos, end)
            pos = end
        else:
            raise bad_length_error(n, "member_id")
        (n,) = _UNPACK_h(buf, pos)
        pos += 2
        if n >= 0:
            end = pos + n
            group_instance_id: str | None = text_at(buf, pos, end)
            pos = end
        elif n == -1:
            group_instance_id = None
        else:
            raise bad_length_error(n, "group_instance_id")
        (n,) = _UNPACK_i(buf, pos)
        pos += 4
        assignments_count = n
        if not 0 <= assignments_count * 6 <= size - pos:
            raise bad_count_error(assignments_count, "assignments", size - pos)
        items += assignments_count
        if items > 50000:
            raise item_limit_error("assignments", 50000)
        assignments: list[SyncGroupRequestAssignment] = []
        for _ in range(assignments_count):
            (n,) = _UNPACK_h(buf, pos)
            pos += 2
            if n >= 0:
                end = pos + n
                assignment_member_id = text_at(buf, pos, end)
                pos = end
            else:
                raise bad_length_error(n, "member_id")
            (n,) = _UNPACK_i(buf, pos)
            pos += 4
            if n >= 0:
                end = pos + n
                assignment_assignment = buf[pos:end]
                pos = end
            else:
                raise bad_length_error(n, "assignment")
            assignments.append(SyncGroupRequestAssignment(MemberId(assignment_member_id), assignment_assignment))
    except (IndexError, error):
        raise Truncated("SyncGroupRequest") from None
    if pos > len(buf):
        raise Truncated("SyncGroupRequest")
    return SyncGroupRequest(GroupId(group_id), generation_id, MemberId(member_id), group_instance_id, None, None, assignments)


def decode_request_v4(buf: bytes, pos: int) -> SyncGroupRequest:
    size = len(buf)
    items = 0
    try:
        n = buf[pos]
        if 0 < n < 128:
            end = pos + n
            group_id = text_at(buf, pos + 1, end)
            pos = end
        else:
            group_id, pos = read_compact_string(buf, pos, "group_id")
        generation_id = int32_at(buf, pos)
        pos += 4
        n = buf[pos]
        if 0 < n < 128:
            end = pos + n
            member_id = text_at(buf, pos + 1, end)
            pos = end
        else:
            member_id, pos = read_compact_string(buf, pos, "member_id")
        n = buf[pos]
        if 0 < n < 128:
            end = pos + n
            group_instance_id: str | None = text_at(buf, pos + 1, end)
            pos = end
        elif n == 0:
            group_instance_id = None
            pos += 1
        else:
            group_instance_id, pos = read_compact_nullable_string(buf, pos, "group_instance_id")
        n = buf[pos]
        assignments_count = n - 1
        if assignments_count < 127:
            pos += 1
        else:
            assignments_count, pos = read_compact_count(buf, pos)
        if not 0 <= assignments_count * 3 <= size - pos:
            raise bad_count_error(assignments_count, "assignments", size - pos)
        items += assignments_count
        if items > 50000:
            raise item_limit_error("assignments", 50000)
        assignments: list[SyncGroupRequestAssignment] = []
        for _ in range(assignments_count):
            n = buf[pos]
            if 0 < n < 128:
                end = pos + n
                assignment_member_id = text_at(buf, pos + 1, end)
                pos = end
            else:
                assignment_member_id, pos = read_compact_string(buf, pos, "member_id")
            n = buf[pos]
            if 0 < n < 128:
                end = pos + n
                assignment_assignment = buf[pos + 1:end]
                pos = end
            else:
                assignment_assignment, pos = read_compact_bytes(buf, pos, "assignment")
            if buf[pos]:
                pos = skip_tags(buf, pos)
            else:
                pos += 1
            assignments.append(SyncGroupRequestAssignment(MemberId(assignment_member_id), assignment_assignment))
        if buf[pos]:
            pos = skip_tags(buf, pos)
        else:
            pos += 1
    except (IndexError, error):
        raise Truncated("SyncGroupRequest") from None
    if pos > len(buf):
        raise Truncated("SyncGroupRequest")
    return SyncGroupRequest(GroupId(group_id), generation_id, MemberId(member_id), group_instance_id, None, None, assignments)


def decode_request_v5(buf: bytes, pos: int) -> SyncGroupRequest:
    size = len(buf)
    items = 0
    try:
        n = buf[pos]
        if 0 < n < 128:
            end = pos + n
            group_id = text_at(buf, pos + 1, end)
            pos = end
        else:
            group_id, pos = read_compact_string(buf, pos, "group_id")
        generation_id = int32_at(buf, pos)
        pos += 4
        n = buf[pos]
        if 0 < n < 128:
            end = pos + n
            member_id = text_at(buf, pos + 1, end)
            pos = end
        else:
            member_id, pos = read_compact_string(buf, pos, "member_id")
        n = buf[pos]
        if 0 < n < 128:
            end = pos + n
            group_instance_id: str | None = text_at(buf, pos + 1, end)
            pos = end
        elif n == 0:
            group_instance_id = None
            pos += 1
        else:
            group_instance_id, pos = read_compact_nullable_string(buf, pos, "group_instance_id")
        n = buf[pos]
        if 0 < n < 128:
            end = pos + n
            protocol_type: str | None = text_at(buf, pos + 1, end)
            pos = end
        elif n == 0:
            protocol_type = None
            pos += 1
        else:
            protocol_type, pos = read_compact_nullable_string(buf, pos, "protocol_type")
        n = buf[pos]
        if 0 < n < 128:
            end = pos + n
            protocol_name: str | None = text_at(buf, pos + 1, end)
            pos = end
        elif n == 0:
            protocol_name = None
            pos += 1
        else:
            protocol_name, pos = read_compact_nullable_string(buf, pos, "protocol_name")
        n = buf[pos]
        assignments_count = n - 1
        if assignments_count < 127:
            pos += 1
        else:
            assignments_count, pos = read_compact_count(buf, pos)
        if not 0 <= assignments_count * 3 <= size - pos:
            raise bad_count_error(assignments_count, "assignments", size - pos)
        items += assignments_count
        if items > 50000:
            raise item_limit_error("assignments", 50000)
        assignments: list[SyncGroupRequestAssignment] = []
        for _ in range(assignments_count):
            n = buf[pos]
            if 0 < n < 128:
                end = pos + n
                assignment_member_id = text_at(buf, pos + 1, end)
                pos = end
            else:
                assignment_member_id, pos = read_compact_string(buf, pos, "member_id")
            n = buf[pos]
            if 0 < n < 128:
                end = pos + n
                assignment_assignment = buf[pos + 1:end]
                pos = end
            else:
                assignment_assignment, pos = read_compact_bytes(buf, pos, "assignment")
            if buf[pos]:
                pos = skip_tags(buf, pos)
            else:
                pos += 1
            assignments.append(SyncGroupRequestAssignment(MemberId(assignment_member_id), assignment_assignment))
        if buf[pos]:
            pos = skip_tags(buf, pos)
        else:
            pos += 1
    except (IndexError, error):
        raise Truncated("SyncGroupRequest") from None
    if pos > len(buf):
        raise Truncated("SyncGroupRequest")
    return SyncGroupRequest(GroupId(group_id), generation_id, MemberId(member_id), group_instance_id, protocol_type, protocol_name, assignments)


def encode_request_v0(message: SyncGroupRequest) -> bytes:
    out: list[bytes] = []
    out.append(pack_string(message.group_id))
    out.append(pack_int32(message.generation_id))
    out.append(pack_string(message.member_id))
    assignments = message.assignments
    out.append(PACK_INT32(len(assignments)))
    for assignment in assignments:
        out.append(pack_string(assignment.member_id))
        out.append(pack_bytes(assignment.assignment))
    return b"".join(out)


encode_request_v1 = encode_request_v0


encode_request_v2 = encode_request_v0


def encode_request_v3(message: SyncGroupRequest) -> bytes:
    out: list[bytes] = []
    out.append(pack_string(message.group_id))
    out.append(pack_int32(message.generation_id))
    out.append(pack_string(message.member_id))
    out.append(NULL_INT16 if message.group_instance_id is None else pack_string(message.group_instance_id))
    assignments = message.assignments
    out.append(PACK_INT32(len(assignments)))
    for assignment in assignments:
        out.append(pack_string(assignment.member_id))
        out.append(pack_bytes(assignment.assignment))
    return b"".join(out)


def encode_request_v4(message: SyncGroupRequest) -> bytes:
    out: list[bytes] = []
    raw = message.group_id.encode()
    n = len(raw) + 1
    out.append(UVARINT[n] + raw if n < 128 else pack_compact_string(message.group_id))
    out.append(pack_int32(message.generation_id))
    raw = message.member_id.encode()
    n = len(raw) + 1
    out.append(UVARINT[n] + raw if n < 128 else pack_compact_string(message.member_id))
    out.append(b"\0" if message.group_instance_id is None else pack_compact_string(message.group_instance_id))
    assignments = message.assignments
    n = len(assignments) + 1
    out.append(UVARINT[n] if n < 128 else pack_uvarint(n))
    for assignment in assignments:
        raw = assignment.member_id.encode()
        n = len(raw) + 1
        out.append(UVARINT[n] + raw if n < 128 else pack_compact_string(assignment.member_id))
        raw = assignment.assignment
        n = len(raw) + 1
        out.append(UVARINT[n] + raw if n < 128 else pack_compact_bytes(assignment.assignment))
        out.append(b"\0")
    out.append(b"\0")
    return b"".join(out)


def encode_request_v5(message: SyncGroupRequest) -> bytes:
    out: list[bytes] = []
    raw = message.group_id.encode()
    n = len(raw) + 1
    out.append(UVARINT[n] + raw if n < 128 else pack_compact_string(message.group_id))
    out.append(pack_int32(message.generation_id))
    raw = message.member_id.encode()
    n = len(raw) + 1
    out.append(UVARINT[n] + raw if n < 128 else pack_compact_string(message.member_id))
    out.append(b"\0" if message.group_instance_id is None else pack_compact_string(message.group_instance_id))
    out.append(b"\0" if message.protocol_type is None else pack_compact_string(message.protocol_type))
    out.append(b"\0" if message.protocol_name is None else pack_compact_string(message.protocol_name))
    assignments = message.assignments
    n = len(assignments) + 1
    out.append(UVARINT[n] if n < 128 else pack_uvarint(n))
    for assignment in assignments:
        raw = assignment.member_id.encode()
        n = len(raw) + 1
        out.append(UVARINT[n] + raw if n < 128 else pack_compact_string(assignment.member_id))
        raw = assignment.assignment
        n = len(raw) + 1
        out.append(UVARINT[n] + raw if n < 128 else pack_compact_bytes(assignment.assignment))
        out.append(b"\0")
    out.append(b"\0")
    return b"".join(out)


def decode_request_v0_in_steps(buf: bytes, pos: int) -> Generator[None, None, SyncGroupRequest]:
    size = len(buf)
    items = 0
    left = 500
    try:
        (n,) = _UNPACK_h(buf, pos)
        pos += 2
        if n >= 0:
            end = pos + n
            group_id = text_at(buf, pos, end)
            pos = end
        else:
            raise bad_length_error(n, "group_id")
        generation_id, n = _UNPACK_ih(buf, pos)
        pos += 6
        if n >= 0:
            end = pos + n
            member_id = text_at(buf, pos, end)
            pos = end
        else:
            raise bad_length_error(n, "member_id")
        (n,) = _UNPACK_i(buf, pos)
        pos += 4
        assignments_count = n
        if not 0 <= assignments_count * 6 <= size - pos:
            raise bad_count_error(assignments_count, "assignments", size - pos)
        items += assignments_count
        if items > 50000:
            raise item_limit_error("assignments", 50000)
        assignments: list[SyncGroupRequestAssignment] = []
        for _ in range(assignments_count):
            (n,) = _UNPACK_h(buf, pos)
            pos += 2
            if n >= 0:
                end = pos + n
                assignment_member_id = text_at(buf, pos, end)
                pos = end
            else:
                raise bad_length_error(n, "member_id")
            (n,) = _UNPACK_i(buf, pos)
            pos += 4
            if n >= 0:
                end = pos + n
                assignment_assignment = buf[pos:end]
                pos = end
            else:
                raise bad_length_error(n, "assignment")
            assignments.append(SyncGroupRequestAssignment(MemberId(assignment_member_id), assignment_assignment))
            left -= 1
            if not left:
                left = 500
                yield
    except (IndexError, error):
        raise Truncated("SyncGroupRequest") from None
    if pos > len(buf):
        raise Truncated("SyncGroupRequest")
    return SyncGroupRequest(GroupId(group_id), generation_id, MemberId(member_id), None, None, None, assignments)


decode_request_v1_in_steps = decode_request_v0_in_steps


decode_request_v2_in_steps = decode_request_v0_in_steps


def decode_request_v3_in_steps(buf: bytes, pos: int) -> Generator[None, None, SyncGroupRequest]:
    size = len(buf)
    items = 0
    left = 500
    try:
        (n,) = _UNPACK_h(buf, pos)
        pos += 2
        if n >= 0:
            end = pos + n
            group_id = text_at(buf, pos, end)
            pos = end
        else:
            raise bad_length_error(n, "group_id")
        generation_id, n = _UNPACK_ih(buf, pos)
        pos += 6
        if n >= 0:
            end = pos + n
            member_id = text_at(buf, pos, end)
            pos = end
        else:
            raise bad_length_error(n, "member_id")
        (n,) = _UNPACK_h(buf, pos)
        pos += 2
        if n >= 0:
            end = pos + n
            group_instance_id: str | None = text_at(buf, pos, end)
            pos = end
        elif n == -1:
            group_instance_id = None
        else:
            raise bad_length_error(n, "group_instance_id")
        (n,) = _UNPACK_i(buf, pos)
        pos += 4
        assignments_count = n
        if not 0 <= assignments_count * 6 <= size - pos:
            raise bad_count_error(assignments_count, "assignments", size - pos)
        items += assignments_count
        if items > 50000:
            raise item_limit_error("assignments", 50000)
        assignments: list[SyncGroupRequestAssignment] = []
        for _ in range(assignments_count):
            (n,) = _UNPACK_h(buf, pos)
            pos += 2
            if n >= 0:
                end = pos + n
                assignment_member_id = text_at(buf, pos, end)
                pos = end
            else:
                raise bad_length_error(n, "member_id")
            (n,) = _UNPACK_i(buf, pos)
            pos += 4
            if n >= 0:
                end = pos + n
                assignment_assignment = buf[pos:end]
                pos = end
            else:
                raise bad_length_error(n, "assignment")
            assignments.append(SyncGroupRequestAssignment(MemberId(assignment_member_id), assignment_assignment))
            left -= 1
            if not left:
                left = 500
                yield
    except (IndexError, error):
        raise Truncated("SyncGroupRequest") from None
    if pos > len(buf):
        raise Truncated("SyncGroupRequest")
    return SyncGroupRequest(GroupId(group_id), generation_id, MemberId(member_id), group_instance_id, None, None, assignments)


def decode_request_v4_in_steps(buf: bytes, pos: int) -> Generator[None, None, SyncGroupRequest]:
    size = len(buf)
    items = 0
    left = 500
    try:
        n = buf[pos]
        if 0 < n < 128:
            end = pos + n
            group_id = text_at(buf, pos + 1, end)
            pos = end
        else:
            group_id, pos = read_compact_string(buf, pos, "group_id")
        generation_id = int32_at(buf, pos)
        pos += 4
        n = buf[pos]
        if 0 < n < 128:
            end = pos + n
            member_id = text_at(buf, pos + 1, end)
            pos = end
        else:
            member_id, pos = read_compact_string(buf, pos, "member_id")
        n = buf[pos]
        if 0 < n < 128:
            end = pos + n
            group_instance_id: str | None = text_at(buf, pos + 1, end)
            pos = end
        elif n == 0:
            group_instance_id = None
            pos += 1
        else:
            group_instance_id, pos = read_compact_nullable_string(buf, pos, "group_instance_id")
        n = buf[pos]
        assignments_count = n - 1
        if assignments_count < 127:
            pos += 1
        else:
            assignments_count, pos = read_compact_count(buf, pos)
        if not 0 <= assignments_count * 3 <= size - pos:
            raise bad_count_error(assignments_count, "assignments", size - pos)
        items += assignments_count
        if items > 50000:
            raise item_limit_error("assignments", 50000)
        assignments: list[SyncGroupRequestAssignment] = []
        for _ in range(assignments_count):
            n = buf[pos]
            if 0 < n < 128:
                end = pos + n
                assignment_member_id = text_at(buf, pos + 1, end)
                pos = end
            else:
                assignment_member_id, pos = read_compact_string(buf, pos, "member_id")
            n = buf[pos]
            if 0 < n < 128:
                end = pos + n
                assignment_assignment = buf[pos + 1:end]
                pos = end
            else:
                assignment_assignment, pos = read_compact_bytes(buf, pos, "assignment")
            if buf[pos]:
                pos = skip_tags(buf, pos)
            else:
                pos += 1
            assignments.append(SyncGroupRequestAssignment(MemberId(assignment_member_id), assignment_assignment))
            left -= 1
            if not left:
                left = 500
                yield
        if buf[pos]:
            pos = skip_tags(buf, pos)
        else:
            pos += 1
    except (IndexError, error):
        raise Truncated("SyncGroupRequest") from None
    if pos > len(buf):
        raise Truncated("SyncGroupRequest")
    return SyncGroupRequest(GroupId(group_id), generation_id, MemberId(member_id), group_instance_id, None, None, assignments)


def decode_request_v5_in_steps(buf: bytes, pos: int) -> Generator[None, None, SyncGroupRequest]:
    size = len(buf)
    items = 0
    left = 500
    try:
        n = buf[pos]
        if 0 < n < 128:
            end = pos + n
            group_id = text_at(buf, pos + 1, end)
            pos = end
        else:
            group_id, pos = read_compact_string(buf, pos, "group_id")
        generation_id = int32_at(buf, pos)
        pos += 4
        n = buf[pos]
        if 0 < n < 128:
            end = pos + n
            member_id = text_at(buf, pos + 1, end)
            pos = end
        else:
            member_id, pos = read_compact_string(buf, pos, "member_id")
        n = buf[pos]
        if 0 < n < 128:
            end = pos + n
            group_instance_id: str | None = text_at(buf, pos + 1, end)
            pos = end
        elif n == 0:
            group_instance_id = None
            pos += 1
        else:
            group_instance_id, pos = read_compact_nullable_string(buf, pos, "group_instance_id")
        n = buf[pos]
        if 0 < n < 128:
            end = pos + n
            protocol_type: str | None = text_at(buf, pos + 1, end)
            pos = end
        elif n == 0:
            protocol_type = None
            pos += 1
        else:
            protocol_type, pos = read_compact_nullable_string(buf, pos, "protocol_type")
        n = buf[pos]
        if 0 < n < 128:
            end = pos + n
            protocol_name: str | None = text_at(buf, pos + 1, end)
            pos = end
        elif n == 0:
            protocol_name = None
            pos += 1
        else:
            protocol_name, pos = read_compact_nullable_string(buf, pos, "protocol_name")
        n = buf[pos]
        assignments_count = n - 1
        if assignments_count < 127:
            pos += 1
        else:
            assignments_count, pos = read_compact_count(buf, pos)
        if not 0 <= assignments_count * 3 <= size - pos:
            raise bad_count_error(assignments_count, "assignments", size - pos)
        items += assignments_count
        if items > 50000:
            raise item_limit_error("assignments", 50000)
        assignments: list[SyncGroupRequestAssignment] = []
        for _ in range(assignments_count):
            n = buf[pos]
            if 0 < n < 128:
                end = pos + n
                assignment_member_id = text_at(buf, pos + 1, end)
                pos = end
            else:
                assignment_member_id, pos = read_compact_string(buf, pos, "member_id")
            n = buf[pos]
            if 0 < n < 128:
                end = pos + n
                assignment_assignment = buf[pos + 1:end]
                pos = end
            else:
                assignment_assignment, pos = read_compact_bytes(buf, pos, "assignment")
            if buf[pos]:
                pos = skip_tags(buf, pos)
            else:
                pos += 1
            assignments.append(SyncGroupRequestAssignment(MemberId(assignment_member_id), assignment_assignment))
            left -= 1
            if not left:
                left = 500
                yield
        if buf[pos]:
            pos = skip_tags(buf, pos)
        else:
            pos += 1
    except (IndexError, error):
        raise Truncated("SyncGroupRequest") from None
    if pos > len(buf):
        raise Truncated("SyncGroupRequest")
    return SyncGroupRequest(GroupId(group_id), generation_id, MemberId(member_id), group_instance_id, protocol_type, protocol_name, assignments)


def decode_response_v0(buf: bytes, pos: int) -> SyncGroupResponse:
    try:
        error_code, n = _UNPACK_hi(buf, pos)
        pos += 6
        if n >= 0:
            end = pos + n
            assignment = buf[pos:end]
            pos = end
        else:
            raise bad_length_error(n, "assignment")
    except (IndexError, error):
        raise Truncated("SyncGroupResponse") from None
    if pos > len(buf):
        raise Truncated("SyncGroupResponse")
    return SyncGroupResponse(0, error_code, None, None, assignment)


def decode_response_v1(buf: bytes, pos: int) -> SyncGroupResponse:
    try:
        throttle_time_ms, error_code, n = _UNPACK_ihi(buf, pos)
        pos += 10
        if n >= 0:
            end = pos + n
            assignment = buf[pos:end]
            pos = end
        else:
            raise bad_length_error(n, "assignment")
    except (IndexError, error):
        raise Truncated("SyncGroupResponse") from None
    if pos > len(buf):
        raise Truncated("SyncGroupResponse")
    return SyncGroupResponse(throttle_time_ms, error_code, None, None, assignment)


decode_response_v2 = decode_response_v1


decode_response_v3 = decode_response_v1


def decode_response_v4(buf: bytes, pos: int) -> SyncGroupResponse:
    try:
        throttle_time_ms, error_code, n = _UNPACK_ihB(buf, pos)
        pos += 6
        if 0 < n < 128:
            end = pos + n
            assignment = buf[pos + 1:end]
            pos = end
        else:
            assignment, pos = read_compact_bytes(buf, pos, "assignment")
        if buf[pos]:
            pos = skip_tags(buf, pos)
        else:
            pos += 1
    except (IndexError, error):
        raise Truncated("SyncGroupResponse") from None
    if pos > len(buf):
        raise Truncated("SyncGroupResponse")
    return SyncGroupResponse(throttle_time_ms, error_code, None, None, assignment)


def decode_response_v5(buf: bytes, pos: int) -> SyncGroupResponse:
    try:
        throttle_time_ms, error_code, n = _UNPACK_ihB(buf, pos)
        pos += 6
        if 0 < n < 128:
            end = pos + n
            protocol_type: str | None = text_at(buf, pos + 1, end)
            pos = end
        elif n == 0:
            protocol_type = None
            pos += 1
        else:
            protocol_type, pos = read_compact_nullable_string(buf, pos, "protocol_type")
        n = buf[pos]
        if 0 < n < 128:
            end = pos + n
            protocol_name: str | None = text_at(buf, pos + 1, end)
            pos = end
        elif n == 0:
            protocol_name = None
            pos += 1
        else:
            protocol_name, pos = read_compact_nullable_string(buf, pos, "protocol_name")
        n = buf[pos]
        if 0 < n < 128:
            end = pos + n
            assignment = buf[pos + 1:end]
            pos = end
        else:
            assignment, pos = read_compact_bytes(buf, pos, "assignment")
        if buf[pos]:
            pos = skip_tags(buf, pos)
        else:
            pos += 1
    except (IndexError, error):
        raise Truncated("SyncGroupResponse") from None
    if pos > len(buf):
        raise Truncated("SyncGroupResponse")
    return SyncGroupResponse(throttle_time_ms, error_code, protocol_type, protocol_name, assignment)


def encode_response_v0(message: SyncGroupResponse) -> bytes:
    out: list[bytes] = []
    out.append(_PACK_h(message.error_code))
    out.append(pack_bytes(message.assignment))
    return b"".join(out)


def encode_response_v1(message: SyncGroupResponse) -> bytes:
    out: list[bytes] = []
    out.append(pack_partition_error(message.throttle_time_ms, message.error_code))
    out.append(pack_bytes(message.assignment))
    return b"".join(out)


encode_response_v2 = encode_response_v1


encode_response_v3 = encode_response_v1


def encode_response_v4(message: SyncGroupResponse) -> bytes:
    out: list[bytes] = []
    out.append(pack_partition_error(message.throttle_time_ms, message.error_code))
    raw = message.assignment
    n = len(raw) + 1
    out.append(UVARINT[n] + raw if n < 128 else pack_compact_bytes(message.assignment))
    out.append(b"\0")
    return b"".join(out)


def encode_response_v5(message: SyncGroupResponse) -> bytes:
    out: list[bytes] = []
    out.append(pack_partition_error(message.throttle_time_ms, message.error_code))
    out.append(b"\0" if message.protocol_type is None else pack_compact_string(message.protocol_type))
    out.append(b"\0" if message.protocol_name is None else pack_compact_string(message.protocol_name))
    raw = message.assignment
    n = len(raw) + 1
    out.append(UVARINT[n] + raw if n < 128 else pack_compact_bytes(message.assignment))
    out.append(b"\0")
    return b"".join(out)


CODECS: Final[dict[int, Codec[SyncGroupRequest, SyncGroupResponse]]] = {
    0: Codec(decode_request_v0, encode_response_v0, decode_response_v0, encode_request_v0, False, decode_request_v0_in_steps),
    1: Codec(decode_request_v1, encode_response_v1, decode_response_v1, encode_request_v1, False, decode_request_v1_in_steps),
    2: Codec(decode_request_v2, encode_response_v2, decode_response_v2, encode_request_v2, False, decode_request_v2_in_steps),
    3: Codec(decode_request_v3, encode_response_v3, decode_response_v3, encode_request_v3, False, decode_request_v3_in_steps),
    4: Codec(decode_request_v4, encode_response_v4, decode_response_v4, encode_request_v4, True, decode_request_v4_in_steps),
    5: Codec(decode_request_v5, encode_response_v5, decode_response_v5, encode_request_v5, True, decode_request_v5_in_steps),
}

SCHEMA: Final = ApiSchema(ApiKey.SYNC_GROUP, SyncGroupRequest, SyncGroupResponse, CODECS)
