# SPDX-License-Identifier: Apache-2.0
# Generated from Apache Kafka's message schemas by `python -m protocol.codegen`. Do not edit.
# fmt: off
"""LeaveGroup v0-v5: the request and the response, both ways."""

from collections.abc import Callable
from struct import Struct, error
from typing import Final

from protocol.apis import ApiKey
from protocol.codec import ApiSchema, Codec
from protocol.compiled_struct import EMPTY, FieldsValue
from protocol.errors import Truncated
from protocol.mypyc_shim import mypyc_attr
from protocol.newtypes import GroupId, MemberId
from protocol.wire import (
    NULL_INT16,
    PACK_INT32,
    UVARINT,
    bad_count_error,
    bad_length_error,
    item_limit_error,
    pack_compact_string,
    pack_partition_error,
    pack_string,
    pack_uvarint,
    read_compact_count,
    read_compact_nullable_string,
    read_compact_string,
    skip_tags,
    text_at,
)

_UNPACK_h: Final[Callable[[bytes, int], tuple[int]]] = Struct(">h").unpack_from
_UNPACK_i: Final[Callable[[bytes, int], tuple[int]]] = Struct(">i").unpack_from
_UNPACK_ih: Final[Callable[[bytes, int], tuple[int, int]]] = Struct(">ih").unpack_from
_UNPACK_ihB: Final[Callable[[bytes, int], tuple[int, int, int]]] = Struct(">ihB").unpack_from
_UNPACK_ihi: Final[Callable[[bytes, int], tuple[int, int, int]]] = Struct(">ihi").unpack_from
_PACK_h: Final[Callable[..., bytes]] = Struct(">h").pack
_PACK_hx: Final[Callable[..., bytes]] = Struct(">hx").pack


@mypyc_attr(acyclic=True)
class MemberIdentity(FieldsValue):
    __match_args__: Final = ("member_id", "group_instance_id", "reason",)
    __slots__ = __match_args__

    def __init__(
        self,
        member_id: MemberId = MemberId(""),
        group_instance_id: str | None = None,
        reason: str | None = None,
    ) -> None:
        self.member_id: Final = member_id
        self.group_instance_id: Final = group_instance_id
        self.reason: Final = reason


@mypyc_attr(acyclic=True)
class LeaveGroupRequest(FieldsValue):
    __match_args__: Final = ("group_id", "member_id", "members",)
    __slots__ = __match_args__

    def __init__(
        self,
        group_id: GroupId = GroupId(""),
        member_id: MemberId = MemberId(""),
        members: list[MemberIdentity] = EMPTY,
    ) -> None:
        self.group_id: Final = group_id
        self.member_id: Final = member_id
        self.members: Final = members if members is not EMPTY else []


@mypyc_attr(acyclic=True)
class MemberResponse(FieldsValue):
    __match_args__: Final = ("member_id", "group_instance_id", "error_code",)
    __slots__ = __match_args__

    def __init__(
        self,
        member_id: MemberId = MemberId(""),
        group_instance_id: str | None = "",
        error_code: int = 0,
    ) -> None:
        self.member_id: Final = member_id
        self.group_instance_id: Final = group_instance_id
        self.error_code: Final = error_code


@mypyc_attr(acyclic=True)
class LeaveGroupResponse(FieldsValue):
    __match_args__: Final = ("throttle_time_ms", "error_code", "members",)
    __slots__ = __match_args__

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        members: list[MemberResponse] = EMPTY,
    ) -> None:
        self.throttle_time_ms: Final = throttle_time_ms
        self.error_code: Final = error_code
        self.members: Final = members if members is not EMPTY else []


def decode_request_v0(buf: bytes, pos: int) -> LeaveGroupRequest:
    try:
        (n,) = _UNPACK_h(buf, pos)
        pos += 2
        if n >= 0:
            end = pos + n
            group_id = text_at(buf, pos, end)
            pos = end
        else:
            raise bad_length_error(n, "group_id")
        (n,) = _UNPACK_h(buf, pos)
        pos += 2
        if n >= 0:
            end = pos + n
            member_id = text_at(buf, pos, end)
            pos = end
        else:
            raise bad_length_error(n, "member_id")
    except (IndexError, error):
        raise Truncated("LeaveGroupRequest") from None
    if pos > len(buf):
        raise Truncated("LeaveGroupRequest")
    return LeaveGroupRequest(GroupId(group_id), MemberId(member_id), [])


decode_request_v1 = decode_request_v0


decode_request_v2 = decode_request_v0


def decode_request_v3(buf: bytes, pos: int) -> LeaveGroupRequest:
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
        (n,) = _UNPACK_i(buf, pos)
        pos += 4
        members_count = n
        if not 0 <= members_count * 4 <= size - pos:
            raise bad_count_error(members_count, "members", size - pos)
        items += members_count
        if items > 10000:
            raise item_limit_error("members", 10000)
        members: list[MemberIdentity] = []
        for _ in range(members_count):
            (n,) = _UNPACK_h(buf, pos)
            pos += 2
            if n >= 0:
                end = pos + n
                member_member_id = text_at(buf, pos, end)
                pos = end
            else:
                raise bad_length_error(n, "member_id")
            (n,) = _UNPACK_h(buf, pos)
            pos += 2
            if n >= 0:
                end = pos + n
                member_group_instance_id: str | None = text_at(buf, pos, end)
                pos = end
            elif n == -1:
                member_group_instance_id = None
            else:
                raise bad_length_error(n, "group_instance_id")
            members.append(MemberIdentity(MemberId(member_member_id), member_group_instance_id, None))
    except (IndexError, error):
        raise Truncated("LeaveGroupRequest") from None
    if pos > len(buf):
        raise Truncated("LeaveGroupRequest")
    return LeaveGroupRequest(GroupId(group_id), MemberId(""), members)


def decode_request_v4(buf: bytes, pos: int) -> LeaveGroupRequest:
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
        n = buf[pos]
        members_count = n - 1
        if members_count < 127:
            pos += 1
        else:
            members_count, pos = read_compact_count(buf, pos)
        if not 0 <= members_count * 3 <= size - pos:
            raise bad_count_error(members_count, "members", size - pos)
        items += members_count
        if items > 10000:
            raise item_limit_error("members", 10000)
        members: list[MemberIdentity] = []
        for _ in range(members_count):
            n = buf[pos]
            if 0 < n < 128:
                end = pos + n
                member_member_id = text_at(buf, pos + 1, end)
                pos = end
            else:
                member_member_id, pos = read_compact_string(buf, pos, "member_id")
            n = buf[pos]
            if 0 < n < 128:
                end = pos + n
                member_group_instance_id: str | None = text_at(buf, pos + 1, end)
                pos = end
            elif n == 0:
                member_group_instance_id = None
                pos += 1
            else:
                member_group_instance_id, pos = read_compact_nullable_string(buf, pos, "group_instance_id")
            if buf[pos]:
                pos = skip_tags(buf, pos)
            else:
                pos += 1
            members.append(MemberIdentity(MemberId(member_member_id), member_group_instance_id, None))
        if buf[pos]:
            pos = skip_tags(buf, pos)
        else:
            pos += 1
    except (IndexError, error):
        raise Truncated("LeaveGroupRequest") from None
    if pos > len(buf):
        raise Truncated("LeaveGroupRequest")
    return LeaveGroupRequest(GroupId(group_id), MemberId(""), members)


def decode_request_v5(buf: bytes, pos: int) -> LeaveGroupRequest:
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
        n = buf[pos]
        members_count = n - 1
        if members_count < 127:
            pos += 1
        else:
            members_count, pos = read_compact_count(buf, pos)
        if not 0 <= members_count * 4 <= size - pos:
            raise bad_count_error(members_count, "members", size - pos)
        items += members_count
        if items > 10000:
            raise item_limit_error("members", 10000)
        members: list[MemberIdentity] = []
        for _ in range(members_count):
            n = buf[pos]
            if 0 < n < 128:
                end = pos + n
                member_member_id = text_at(buf, pos + 1, end)
                pos = end
            else:
                member_member_id, pos = read_compact_string(buf, pos, "member_id")
            n = buf[pos]
            if 0 < n < 128:
                end = pos + n
                member_group_instance_id: str | None = text_at(buf, pos + 1, end)
                pos = end
            elif n == 0:
                member_group_instance_id = None
                pos += 1
            else:
                member_group_instance_id, pos = read_compact_nullable_string(buf, pos, "group_instance_id")
            n = buf[pos]
            if 0 < n < 128:
                end = pos + n
                member_reason: str | None = text_at(buf, pos + 1, end)
                pos = end
            elif n == 0:
                member_reason = None
                pos += 1
            else:
                member_reason, pos = read_compact_nullable_string(buf, pos, "reason")
            if buf[pos]:
                pos = skip_tags(buf, pos)
            else:
                pos += 1
            members.append(MemberIdentity(MemberId(member_member_id), member_group_instance_id, member_reason))
        if buf[pos]:
            pos = skip_tags(buf, pos)
        else:
            pos += 1
    except (IndexError, error):
        raise Truncated("LeaveGroupRequest") from None
    if pos > len(buf):
        raise Truncated("LeaveGroupRequest")
    return LeaveGroupRequest(GroupId(group_id), MemberId(""), members)


def encode_request_v0(message: LeaveGroupRequest) -> bytes:
    out: list[bytes] = []
    out.append(pack_string(message.group_id))
    out.append(pack_string(message.member_id))
    return b"".join(out)


encode_request_v1 = encode_request_v0


encode_request_v2 = encode_request_v0


def encode_request_v3(message: LeaveGroupRequest) -> bytes:
    out: list[bytes] = []
    out.append(pack_string(message.group_id))
    members = message.members
    out.append(PACK_INT32(len(members)))
    for member in members:
        out.append(pack_string(member.member_id))
        out.append(NULL_INT16 if member.group_instance_id is None else pack_string(member.group_instance_id))
    return b"".join(out)


def encode_request_v4(message: LeaveGroupRequest) -> bytes:
    out: list[bytes] = []
    raw = message.group_id.encode()
    n = len(raw) + 1
    out.append(UVARINT[n] + raw if n < 128 else pack_compact_string(message.group_id))
    members = message.members
    n = len(members) + 1
    out.append(UVARINT[n] if n < 128 else pack_uvarint(n))
    for member in members:
        raw = member.member_id.encode()
        n = len(raw) + 1
        out.append(UVARINT[n] + raw if n < 128 else pack_compact_string(member.member_id))
        out.append(b"\0" if member.group_instance_id is None else pack_compact_string(member.group_instance_id))
        out.append(b"\0")
    out.append(b"\0")
    return b"".join(out)


def encode_request_v5(message: LeaveGroupRequest) -> bytes:
    out: list[bytes] = []
    raw = message.group_id.encode()
    n = len(raw) + 1
    out.append(UVARINT[n] + raw if n < 128 else pack_compact_string(message.group_id))
    members = message.members
    n = len(members) + 1
    out.append(UVARINT[n] if n < 128 else pack_uvarint(n))
    for member in members:
        raw = member.member_id.encode()
        n = len(raw) + 1
        out.append(UVARINT[n] + raw if n < 128 else pack_compact_string(member.member_id))
        out.append(b"\0" if member.group_instance_id is None else pack_compact_string(member.group_instance_id))
        out.append(b"\0" if member.reason is None else pack_compact_string(member.reason))
        out.append(b"\0")
    out.append(b"\0")
    return b"".join(out)


def decode_response_v0(buf: bytes, pos: int) -> LeaveGroupResponse:
    try:
        (error_code,) = _UNPACK_h(buf, pos)
        pos += 2
    except (IndexError, error):
        raise Truncated("LeaveGroupResponse") from None
    if pos > len(buf):
        raise Truncated("LeaveGroupResponse")
    return LeaveGroupResponse(0, error_code, [])


def decode_response_v1(buf: bytes, pos: int) -> LeaveGroupResponse:
    try:
        throttle_time_ms, error_code = _UNPACK_ih(buf, pos)
        pos += 6
    except (IndexError, error):
        raise Truncated("LeaveGroupResponse") from None
    if pos > len(buf):
        raise Truncated("LeaveGroupResponse")
    return LeaveGroupResponse(throttle_time_ms, error_code, [])


decode_response_v2 = decode_response_v1


def decode_response_v3(buf: bytes, pos: int) -> LeaveGroupResponse:
    size = len(buf)
    try:
        throttle_time_ms, error_code, n = _UNPACK_ihi(buf, pos)
        pos += 10
        members_count = n
        if not 0 <= members_count * 6 <= size - pos:
            raise bad_count_error(members_count, "members", size - pos)
        members: list[MemberResponse] = []
        for _ in range(members_count):
            (n,) = _UNPACK_h(buf, pos)
            pos += 2
            if n >= 0:
                end = pos + n
                member_member_id = text_at(buf, pos, end)
                pos = end
            else:
                raise bad_length_error(n, "member_id")
            (n,) = _UNPACK_h(buf, pos)
            pos += 2
            if n >= 0:
                end = pos + n
                member_group_instance_id: str | None = text_at(buf, pos, end)
                pos = end
            elif n == -1:
                member_group_instance_id = None
            else:
                raise bad_length_error(n, "group_instance_id")
            (member_error_code,) = _UNPACK_h(buf, pos)
            pos += 2
            members.append(MemberResponse(MemberId(member_member_id), member_group_instance_id, member_error_code))
    except (IndexError, error):
        raise Truncated("LeaveGroupResponse") from None
    if pos > len(buf):
        raise Truncated("LeaveGroupResponse")
    return LeaveGroupResponse(throttle_time_ms, error_code, members)


def decode_response_v4(buf: bytes, pos: int) -> LeaveGroupResponse:
    size = len(buf)
    try:
        throttle_time_ms, error_code, n = _UNPACK_ihB(buf, pos)
        pos += 6
        members_count = n - 1
        if members_count < 127:
            pos += 1
        else:
            members_count, pos = read_compact_count(buf, pos)
        if not 0 <= members_count * 5 <= size - pos:
            raise bad_count_error(members_count, "members", size - pos)
        members: list[MemberResponse] = []
        for _ in range(members_count):
            n = buf[pos]
            if 0 < n < 128:
                end = pos + n
                member_member_id = text_at(buf, pos + 1, end)
                pos = end
            else:
                member_member_id, pos = read_compact_string(buf, pos, "member_id")
            n = buf[pos]
            if 0 < n < 128:
                end = pos + n
                member_group_instance_id: str | None = text_at(buf, pos + 1, end)
                pos = end
            elif n == 0:
                member_group_instance_id = None
                pos += 1
            else:
                member_group_instance_id, pos = read_compact_nullable_string(buf, pos, "group_instance_id")
            (member_error_code,) = _UNPACK_h(buf, pos)
            pos += 2
            if buf[pos]:
                pos = skip_tags(buf, pos)
            else:
                pos += 1
            members.append(MemberResponse(MemberId(member_member_id), member_group_instance_id, member_error_code))
        if buf[pos]:
            pos = skip_tags(buf, pos)
        else:
            pos += 1
    except (IndexError, error):
        raise Truncated("LeaveGroupResponse") from None
    if pos > len(buf):
        raise Truncated("LeaveGroupResponse")
    return LeaveGroupResponse(throttle_time_ms, error_code, members)


decode_response_v5 = decode_response_v4


def encode_response_v0(message: LeaveGroupResponse) -> bytes:
    return _PACK_h(message.error_code)


def encode_response_v1(message: LeaveGroupResponse) -> bytes:
    return pack_partition_error(message.throttle_time_ms, message.error_code)


encode_response_v2 = encode_response_v1


def encode_response_v3(message: LeaveGroupResponse) -> bytes:
    out: list[bytes] = []
    out.append(pack_partition_error(message.throttle_time_ms, message.error_code))
    members = message.members
    out.append(PACK_INT32(len(members)))
    for member in members:
        out.append(pack_string(member.member_id))
        out.append(NULL_INT16 if member.group_instance_id is None else pack_string(member.group_instance_id))
        out.append(_PACK_h(member.error_code))
    return b"".join(out)


def encode_response_v4(message: LeaveGroupResponse) -> bytes:
    out: list[bytes] = []
    out.append(pack_partition_error(message.throttle_time_ms, message.error_code))
    members = message.members
    n = len(members) + 1
    out.append(UVARINT[n] if n < 128 else pack_uvarint(n))
    for member in members:
        raw = member.member_id.encode()
        n = len(raw) + 1
        out.append(UVARINT[n] + raw if n < 128 else pack_compact_string(member.member_id))
        out.append(b"\0" if member.group_instance_id is None else pack_compact_string(member.group_instance_id))
        out.append(_PACK_hx(member.error_code))
    out.append(b"\0")
    return b"".join(out)


encode_response_v5 = encode_response_v4


CODECS: Final[dict[int, Codec[LeaveGroupRequest, LeaveGroupResponse]]] = {
    0: Codec(decode_request_v0, encode_response_v0, decode_response_v0, encode_request_v0, False),
    1: Codec(decode_request_v1, encode_response_v1, decode_response_v1, encode_request_v1, False),
    2: Codec(decode_request_v2, encode_response_v2, decode_response_v2, encode_request_v2, False),
    3: Codec(decode_request_v3, encode_response_v3, decode_response_v3, encode_request_v3, False),
    4: Codec(decode_request_v4, encode_response_v4, decode_response_v4, encode_request_v4, True),
    5: Codec(decode_request_v5, encode_response_v5, decode_response_v5, encode_request_v5, True),
}

SCHEMA: Final = ApiSchema(ApiKey.LEAVE_GROUP, LeaveGroupRequest, LeaveGroupResponse, CODECS)
