# SPDX-License-Identifier: Apache-2.0
# Generated from Apache Kafka's message schemas by `python -m protocol.codegen`. Do not edit.
# fmt: off
"""JoinGroup v0-v9: the request and the response, both ways."""

from collections.abc import Callable
from struct import Struct, error
from typing import Final

from protocol.apis import ApiKey
from protocol.codec import ApiSchema, Codec
from protocol.compiled_struct import EMPTY, FieldsValue
from protocol.errors import Truncated, UnexpectedNull
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
    pack_string,
    pack_uvarint,
    read_compact_bytes,
    read_compact_count,
    read_compact_nullable_string,
    read_compact_string,
    skip_tags,
    text_at,
)

_UNPACK_tB: Final[Callable[[bytes, int], tuple[bool, int]]] = Struct(">?B").unpack_from
_UNPACK_h: Final[Callable[[bytes, int], tuple[int]]] = Struct(">h").unpack_from
_UNPACK_hih: Final[Callable[[bytes, int], tuple[int, int, int]]] = Struct(">hih").unpack_from
_UNPACK_i: Final[Callable[[bytes, int], tuple[int]]] = Struct(">i").unpack_from
_UNPACK_ih: Final[Callable[[bytes, int], tuple[int, int]]] = Struct(">ih").unpack_from
_UNPACK_ihiB: Final[Callable[[bytes, int], tuple[int, int, int, int]]] = Struct(">ihiB").unpack_from
_UNPACK_ihih: Final[Callable[[bytes, int], tuple[int, int, int, int]]] = Struct(">ihih").unpack_from
_UNPACK_iiB: Final[Callable[[bytes, int], tuple[int, int, int]]] = Struct(">iiB").unpack_from
_UNPACK_iih: Final[Callable[[bytes, int], tuple[int, int, int]]] = Struct(">iih").unpack_from
_PACK_t: Final[Callable[..., bytes]] = Struct(">?").pack
_PACK_hi: Final[Callable[..., bytes]] = Struct(">hi").pack
_PACK_ihi: Final[Callable[..., bytes]] = Struct(">ihi").pack
_PACK_ii: Final[Callable[..., bytes]] = Struct(">ii").pack


@mypyc_attr(acyclic=True)
class JoinGroupRequestProtocol(FieldsValue):
    __match_args__: Final = ("name", "metadata",)
    __slots__ = __match_args__

    def __init__(
        self,
        name: str = "",
        metadata: bytes = b"",
    ) -> None:
        self.name: Final = name
        self.metadata: Final = metadata


@mypyc_attr(acyclic=True)
class JoinGroupRequest(FieldsValue):
    __match_args__: Final = ("group_id", "session_timeout_ms", "rebalance_timeout_ms", "member_id", "group_instance_id", "protocol_type", "protocols", "reason",)
    __slots__ = __match_args__

    def __init__(
        self,
        group_id: GroupId = GroupId(""),
        session_timeout_ms: int = 0,
        rebalance_timeout_ms: int = -1,
        member_id: MemberId = MemberId(""),
        group_instance_id: str | None = None,
        protocol_type: str = "",
        protocols: list[JoinGroupRequestProtocol] = EMPTY,
        reason: str | None = None,
    ) -> None:
        self.group_id: Final = group_id
        self.session_timeout_ms: Final = session_timeout_ms
        self.rebalance_timeout_ms: Final = rebalance_timeout_ms
        self.member_id: Final = member_id
        self.group_instance_id: Final = group_instance_id
        self.protocol_type: Final = protocol_type
        self.protocols: Final = protocols if protocols is not EMPTY else []
        self.reason: Final = reason


@mypyc_attr(acyclic=True)
class JoinGroupResponseMember(FieldsValue):
    __match_args__: Final = ("member_id", "group_instance_id", "metadata",)
    __slots__ = __match_args__

    def __init__(
        self,
        member_id: MemberId = MemberId(""),
        group_instance_id: str | None = None,
        metadata: bytes = b"",
    ) -> None:
        self.member_id: Final = member_id
        self.group_instance_id: Final = group_instance_id
        self.metadata: Final = metadata


@mypyc_attr(acyclic=True)
class JoinGroupResponse(FieldsValue):
    __match_args__: Final = ("throttle_time_ms", "error_code", "generation_id", "protocol_type", "protocol_name", "leader", "skip_assignment", "member_id", "members",)
    __slots__ = __match_args__

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        generation_id: int = -1,
        protocol_type: str | None = None,
        protocol_name: str | None = "",
        leader: MemberId = MemberId(""),
        skip_assignment: bool = False,
        member_id: MemberId = MemberId(""),
        members: list[JoinGroupResponseMember] = EMPTY,
    ) -> None:
        self.throttle_time_ms: Final = throttle_time_ms
        self.error_code: Final = error_code
        self.generation_id: Final = generation_id
        self.protocol_type: Final = protocol_type
        self.protocol_name: Final = protocol_name
        self.leader: Final = leader
        self.skip_assignment: Final = skip_assignment
        self.member_id: Final = member_id
        self.members: Final = members if members is not EMPTY else []


def decode_request_v0(buf: bytes, pos: int) -> JoinGroupRequest:
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
        session_timeout_ms, n = _UNPACK_ih(buf, pos)
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
            protocol_type = text_at(buf, pos, end)
            pos = end
        else:
            raise bad_length_error(n, "protocol_type")
        (n,) = _UNPACK_i(buf, pos)
        pos += 4
        protocols_count = n
        if not 0 <= protocols_count * 6 <= size - pos:
            raise bad_count_error(protocols_count, "protocols", size - pos)
        items += protocols_count
        if items > 1000:
            raise item_limit_error("protocols", 1000)
        protocols: list[JoinGroupRequestProtocol] = []
        for _ in range(protocols_count):
            (n,) = _UNPACK_h(buf, pos)
            pos += 2
            if n >= 0:
                end = pos + n
                protocol_name = text_at(buf, pos, end)
                pos = end
            else:
                raise bad_length_error(n, "name")
            (n,) = _UNPACK_i(buf, pos)
            pos += 4
            if n >= 0:
                end = pos + n
                protocol_metadata = buf[pos:end]
                pos = end
            else:
                raise bad_length_error(n, "metadata")
            protocols.append(JoinGroupRequestProtocol(protocol_name, protocol_metadata))
    except (IndexError, error):
        raise Truncated("JoinGroupRequest") from None
    if pos > len(buf):
        raise Truncated("JoinGroupRequest")
    return JoinGroupRequest(GroupId(group_id), session_timeout_ms, -1, MemberId(member_id), None, protocol_type, protocols, None)


def decode_request_v1(buf: bytes, pos: int) -> JoinGroupRequest:
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
        session_timeout_ms, rebalance_timeout_ms, n = _UNPACK_iih(buf, pos)
        pos += 10
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
            protocol_type = text_at(buf, pos, end)
            pos = end
        else:
            raise bad_length_error(n, "protocol_type")
        (n,) = _UNPACK_i(buf, pos)
        pos += 4
        protocols_count = n
        if not 0 <= protocols_count * 6 <= size - pos:
            raise bad_count_error(protocols_count, "protocols", size - pos)
        items += protocols_count
        if items > 1000:
            raise item_limit_error("protocols", 1000)
        protocols: list[JoinGroupRequestProtocol] = []
        for _ in range(protocols_count):
            (n,) = _UNPACK_h(buf, pos)
            pos += 2
            if n >= 0:
                end = pos + n
                protocol_name = text_at(buf, pos, end)
                pos = end
            else:
                raise bad_length_error(n, "name")
            (n,) = _UNPACK_i(buf, pos)
            pos += 4
            if n >= 0:
                end = pos + n
                protocol_metadata = buf[pos:end]
                pos = end
            else:
                raise bad_length_error(n, "metadata")
            protocols.append(JoinGroupRequestProtocol(protocol_name, protocol_metadata))
    except (IndexError, error):
        raise Truncated("JoinGroupRequest") from None
    if pos > len(buf):
        raise Truncated("JoinGroupRequest")
    return JoinGroupRequest(GroupId(group_id), session_timeout_ms, rebalance_timeout_ms, MemberId(member_id), None, protocol_type, protocols, None)


decode_request_v2 = decode_request_v1


decode_request_v3 = decode_request_v1


decode_request_v4 = decode_request_v1


def decode_request_v5(buf: bytes, pos: int) -> JoinGroupRequest:
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
        session_timeout_ms, rebalance_timeout_ms, n = _UNPACK_iih(buf, pos)
        pos += 10
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
        (n,) = _UNPACK_h(buf, pos)
        pos += 2
        if n >= 0:
            end = pos + n
            protocol_type = text_at(buf, pos, end)
            pos = end
        else:
            raise bad_length_error(n, "protocol_type")
        (n,) = _UNPACK_i(buf, pos)
        pos += 4
        protocols_count = n
        if not 0 <= protocols_count * 6 <= size - pos:
            raise bad_count_error(protocols_count, "protocols", size - pos)
        items += protocols_count
        if items > 1000:
            raise item_limit_error("protocols", 1000)
        protocols: list[JoinGroupRequestProtocol] = []
        for _ in range(protocols_count):
            (n,) = _UNPACK_h(buf, pos)
            pos += 2
            if n >= 0:
                end = pos + n
                protocol_name = text_at(buf, pos, end)
                pos = end
            else:
                raise bad_length_error(n, "name")
            (n,) = _UNPACK_i(buf, pos)
            pos += 4
            if n >= 0:
                end = pos + n
                protocol_metadata = buf[pos:end]
                pos = end
            else:
                raise bad_length_error(n, "metadata")
            protocols.append(JoinGroupRequestProtocol(protocol_name, protocol_metadata))
    except (IndexError, error):
        raise Truncated("JoinGroupRequest") from None
    if pos > len(buf):
        raise Truncated("JoinGroupRequest")
    return JoinGroupRequest(GroupId(group_id), session_timeout_ms, rebalance_timeout_ms, MemberId(member_id), group_instance_id, protocol_type, protocols, None)


def decode_request_v6(buf: bytes, pos: int) -> JoinGroupRequest:
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
        session_timeout_ms, rebalance_timeout_ms, n = _UNPACK_iiB(buf, pos)
        pos += 8
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
            protocol_type = text_at(buf, pos + 1, end)
            pos = end
        else:
            protocol_type, pos = read_compact_string(buf, pos, "protocol_type")
        n = buf[pos]
        protocols_count = n - 1
        if protocols_count < 127:
            pos += 1
        else:
            protocols_count, pos = read_compact_count(buf, pos)
        if not 0 <= protocols_count * 3 <= size - pos:
            raise bad_count_error(protocols_count, "protocols", size - pos)
        items += protocols_count
        if items > 1000:
            raise item_limit_error("protocols", 1000)
        protocols: list[JoinGroupRequestProtocol] = []
        for _ in range(protocols_count):
            n = buf[pos]
            if 0 < n < 128:
                end = pos + n
                protocol_name = text_at(buf, pos + 1, end)
                pos = end
            else:
                protocol_name, pos = read_compact_string(buf, pos, "name")
            n = buf[pos]
            if 0 < n < 128:
                end = pos + n
                protocol_metadata = buf[pos + 1:end]
                pos = end
            else:
                protocol_metadata, pos = read_compact_bytes(buf, pos, "metadata")
            if buf[pos]:
                pos = skip_tags(buf, pos)
            else:
                pos += 1
            protocols.append(JoinGroupRequestProtocol(protocol_name, protocol_metadata))
        if buf[pos]:
            pos = skip_tags(buf, pos)
        else:
            pos += 1
    except (IndexError, error):
        raise Truncated("JoinGroupRequest") from None
    if pos > len(buf):
        raise Truncated("JoinGroupRequest")
    return JoinGroupRequest(GroupId(group_id), session_timeout_ms, rebalance_timeout_ms, MemberId(member_id), group_instance_id, protocol_type, protocols, None)


decode_request_v7 = decode_request_v6


def decode_request_v8(buf: bytes, pos: int) -> JoinGroupRequest:
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
        session_timeout_ms, rebalance_timeout_ms, n = _UNPACK_iiB(buf, pos)
        pos += 8
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
            protocol_type = text_at(buf, pos + 1, end)
            pos = end
        else:
            protocol_type, pos = read_compact_string(buf, pos, "protocol_type")
        n = buf[pos]
        protocols_count = n - 1
        if protocols_count < 127:
            pos += 1
        else:
            protocols_count, pos = read_compact_count(buf, pos)
        if not 0 <= protocols_count * 3 <= size - pos:
            raise bad_count_error(protocols_count, "protocols", size - pos)
        items += protocols_count
        if items > 1000:
            raise item_limit_error("protocols", 1000)
        protocols: list[JoinGroupRequestProtocol] = []
        for _ in range(protocols_count):
            n = buf[pos]
            if 0 < n < 128:
                end = pos + n
                protocol_name = text_at(buf, pos + 1, end)
                pos = end
            else:
                protocol_name, pos = read_compact_string(buf, pos, "name")
            n = buf[pos]
            if 0 < n < 128:
                end = pos + n
                protocol_metadata = buf[pos + 1:end]
                pos = end
            else:
                protocol_metadata, pos = read_compact_bytes(buf, pos, "metadata")
            if buf[pos]:
                pos = skip_tags(buf, pos)
            else:
                pos += 1
            protocols.append(JoinGroupRequestProtocol(protocol_name, protocol_metadata))
        n = buf[pos]
        if 0 < n < 128:
            end = pos + n
            reason: str | None = text_at(buf, pos + 1, end)
            pos = end
        elif n == 0:
            reason = None
            pos += 1
        else:
            reason, pos = read_compact_nullable_string(buf, pos, "reason")
        if buf[pos]:
            pos = skip_tags(buf, pos)
        else:
            pos += 1
    except (IndexError, error):
        raise Truncated("JoinGroupRequest") from None
    if pos > len(buf):
        raise Truncated("JoinGroupRequest")
    return JoinGroupRequest(GroupId(group_id), session_timeout_ms, rebalance_timeout_ms, MemberId(member_id), group_instance_id, protocol_type, protocols, reason)


decode_request_v9 = decode_request_v8


def encode_request_v0(message: JoinGroupRequest) -> bytes:
    out: list[bytes] = []
    out.append(pack_string(message.group_id))
    out.append(pack_int32(message.session_timeout_ms))
    out.append(pack_string(message.member_id))
    out.append(pack_string(message.protocol_type))
    protocols = message.protocols
    out.append(PACK_INT32(len(protocols)))
    for protocol in protocols:
        out.append(pack_string(protocol.name))
        out.append(pack_bytes(protocol.metadata))
    return b"".join(out)


def encode_request_v1(message: JoinGroupRequest) -> bytes:
    out: list[bytes] = []
    out.append(pack_string(message.group_id))
    out.append(_PACK_ii(message.session_timeout_ms, message.rebalance_timeout_ms))
    out.append(pack_string(message.member_id))
    out.append(pack_string(message.protocol_type))
    protocols = message.protocols
    out.append(PACK_INT32(len(protocols)))
    for protocol in protocols:
        out.append(pack_string(protocol.name))
        out.append(pack_bytes(protocol.metadata))
    return b"".join(out)


encode_request_v2 = encode_request_v1


encode_request_v3 = encode_request_v1


encode_request_v4 = encode_request_v1


def encode_request_v5(message: JoinGroupRequest) -> bytes:
    out: list[bytes] = []
    out.append(pack_string(message.group_id))
    out.append(_PACK_ii(message.session_timeout_ms, message.rebalance_timeout_ms))
    out.append(pack_string(message.member_id))
    out.append(NULL_INT16 if message.group_instance_id is None else pack_string(message.group_instance_id))
    out.append(pack_string(message.protocol_type))
    protocols = message.protocols
    out.append(PACK_INT32(len(protocols)))
    for protocol in protocols:
        out.append(pack_string(protocol.name))
        out.append(pack_bytes(protocol.metadata))
    return b"".join(out)


def encode_request_v6(message: JoinGroupRequest) -> bytes:
    out: list[bytes] = []
    raw = message.group_id.encode()
    n = len(raw) + 1
    out.append(UVARINT[n] + raw if n < 128 else pack_compact_string(message.group_id))
    out.append(_PACK_ii(message.session_timeout_ms, message.rebalance_timeout_ms))
    raw = message.member_id.encode()
    n = len(raw) + 1
    out.append(UVARINT[n] + raw if n < 128 else pack_compact_string(message.member_id))
    out.append(b"\0" if message.group_instance_id is None else pack_compact_string(message.group_instance_id))
    raw = message.protocol_type.encode()
    n = len(raw) + 1
    out.append(UVARINT[n] + raw if n < 128 else pack_compact_string(message.protocol_type))
    protocols = message.protocols
    n = len(protocols) + 1
    out.append(UVARINT[n] if n < 128 else pack_uvarint(n))
    for protocol in protocols:
        raw = protocol.name.encode()
        n = len(raw) + 1
        out.append(UVARINT[n] + raw if n < 128 else pack_compact_string(protocol.name))
        raw = protocol.metadata
        n = len(raw) + 1
        out.append(UVARINT[n] + raw if n < 128 else pack_compact_bytes(protocol.metadata))
        out.append(b"\0")
    out.append(b"\0")
    return b"".join(out)


encode_request_v7 = encode_request_v6


def encode_request_v8(message: JoinGroupRequest) -> bytes:
    out: list[bytes] = []
    raw = message.group_id.encode()
    n = len(raw) + 1
    out.append(UVARINT[n] + raw if n < 128 else pack_compact_string(message.group_id))
    out.append(_PACK_ii(message.session_timeout_ms, message.rebalance_timeout_ms))
    raw = message.member_id.encode()
    n = len(raw) + 1
    out.append(UVARINT[n] + raw if n < 128 else pack_compact_string(message.member_id))
    out.append(b"\0" if message.group_instance_id is None else pack_compact_string(message.group_instance_id))
    raw = message.protocol_type.encode()
    n = len(raw) + 1
    out.append(UVARINT[n] + raw if n < 128 else pack_compact_string(message.protocol_type))
    protocols = message.protocols
    n = len(protocols) + 1
    out.append(UVARINT[n] if n < 128 else pack_uvarint(n))
    for protocol in protocols:
        raw = protocol.name.encode()
        n = len(raw) + 1
        out.append(UVARINT[n] + raw if n < 128 else pack_compact_string(protocol.name))
        raw = protocol.metadata
        n = len(raw) + 1
        out.append(UVARINT[n] + raw if n < 128 else pack_compact_bytes(protocol.metadata))
        out.append(b"\0")
    out.append(b"\0" if message.reason is None else pack_compact_string(message.reason))
    out.append(b"\0")
    return b"".join(out)


encode_request_v9 = encode_request_v8


def decode_response_v0(buf: bytes, pos: int) -> JoinGroupResponse:
    size = len(buf)
    try:
        error_code, generation_id, n = _UNPACK_hih(buf, pos)
        pos += 8
        if n >= 0:
            end = pos + n
            protocol_name = text_at(buf, pos, end)
            pos = end
        else:
            raise bad_length_error(n, "protocol_name")
        (n,) = _UNPACK_h(buf, pos)
        pos += 2
        if n >= 0:
            end = pos + n
            leader = text_at(buf, pos, end)
            pos = end
        else:
            raise bad_length_error(n, "leader")
        (n,) = _UNPACK_h(buf, pos)
        pos += 2
        if n >= 0:
            end = pos + n
            member_id = text_at(buf, pos, end)
            pos = end
        else:
            raise bad_length_error(n, "member_id")
        (n,) = _UNPACK_i(buf, pos)
        pos += 4
        members_count = n
        if not 0 <= members_count * 6 <= size - pos:
            raise bad_count_error(members_count, "members", size - pos)
        members: list[JoinGroupResponseMember] = []
        for _ in range(members_count):
            (n,) = _UNPACK_h(buf, pos)
            pos += 2
            if n >= 0:
                end = pos + n
                member_member_id = text_at(buf, pos, end)
                pos = end
            else:
                raise bad_length_error(n, "member_id")
            (n,) = _UNPACK_i(buf, pos)
            pos += 4
            if n >= 0:
                end = pos + n
                member_metadata = buf[pos:end]
                pos = end
            else:
                raise bad_length_error(n, "metadata")
            members.append(JoinGroupResponseMember(MemberId(member_member_id), None, member_metadata))
    except (IndexError, error):
        raise Truncated("JoinGroupResponse") from None
    if pos > len(buf):
        raise Truncated("JoinGroupResponse")
    return JoinGroupResponse(0, error_code, generation_id, None, protocol_name, MemberId(leader), False, MemberId(member_id), members)


decode_response_v1 = decode_response_v0


def decode_response_v2(buf: bytes, pos: int) -> JoinGroupResponse:
    size = len(buf)
    try:
        throttle_time_ms, error_code, generation_id, n = _UNPACK_ihih(buf, pos)
        pos += 12
        if n >= 0:
            end = pos + n
            protocol_name = text_at(buf, pos, end)
            pos = end
        else:
            raise bad_length_error(n, "protocol_name")
        (n,) = _UNPACK_h(buf, pos)
        pos += 2
        if n >= 0:
            end = pos + n
            leader = text_at(buf, pos, end)
            pos = end
        else:
            raise bad_length_error(n, "leader")
        (n,) = _UNPACK_h(buf, pos)
        pos += 2
        if n >= 0:
            end = pos + n
            member_id = text_at(buf, pos, end)
            pos = end
        else:
            raise bad_length_error(n, "member_id")
        (n,) = _UNPACK_i(buf, pos)
        pos += 4
        members_count = n
        if not 0 <= members_count * 6 <= size - pos:
            raise bad_count_error(members_count, "members", size - pos)
        members: list[JoinGroupResponseMember] = []
        for _ in range(members_count):
            (n,) = _UNPACK_h(buf, pos)
            pos += 2
            if n >= 0:
                end = pos + n
                member_member_id = text_at(buf, pos, end)
                pos = end
            else:
                raise bad_length_error(n, "member_id")
            (n,) = _UNPACK_i(buf, pos)
            pos += 4
            if n >= 0:
                end = pos + n
                member_metadata = buf[pos:end]
                pos = end
            else:
                raise bad_length_error(n, "metadata")
            members.append(JoinGroupResponseMember(MemberId(member_member_id), None, member_metadata))
    except (IndexError, error):
        raise Truncated("JoinGroupResponse") from None
    if pos > len(buf):
        raise Truncated("JoinGroupResponse")
    return JoinGroupResponse(throttle_time_ms, error_code, generation_id, None, protocol_name, MemberId(leader), False, MemberId(member_id), members)


decode_response_v3 = decode_response_v2


decode_response_v4 = decode_response_v2


def decode_response_v5(buf: bytes, pos: int) -> JoinGroupResponse:
    size = len(buf)
    try:
        throttle_time_ms, error_code, generation_id, n = _UNPACK_ihih(buf, pos)
        pos += 12
        if n >= 0:
            end = pos + n
            protocol_name = text_at(buf, pos, end)
            pos = end
        else:
            raise bad_length_error(n, "protocol_name")
        (n,) = _UNPACK_h(buf, pos)
        pos += 2
        if n >= 0:
            end = pos + n
            leader = text_at(buf, pos, end)
            pos = end
        else:
            raise bad_length_error(n, "leader")
        (n,) = _UNPACK_h(buf, pos)
        pos += 2
        if n >= 0:
            end = pos + n
            member_id = text_at(buf, pos, end)
            pos = end
        else:
            raise bad_length_error(n, "member_id")
        (n,) = _UNPACK_i(buf, pos)
        pos += 4
        members_count = n
        if not 0 <= members_count * 8 <= size - pos:
            raise bad_count_error(members_count, "members", size - pos)
        members: list[JoinGroupResponseMember] = []
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
            (n,) = _UNPACK_i(buf, pos)
            pos += 4
            if n >= 0:
                end = pos + n
                member_metadata = buf[pos:end]
                pos = end
            else:
                raise bad_length_error(n, "metadata")
            members.append(JoinGroupResponseMember(MemberId(member_member_id), member_group_instance_id, member_metadata))
    except (IndexError, error):
        raise Truncated("JoinGroupResponse") from None
    if pos > len(buf):
        raise Truncated("JoinGroupResponse")
    return JoinGroupResponse(throttle_time_ms, error_code, generation_id, None, protocol_name, MemberId(leader), False, MemberId(member_id), members)


def decode_response_v6(buf: bytes, pos: int) -> JoinGroupResponse:
    size = len(buf)
    try:
        throttle_time_ms, error_code, generation_id, n = _UNPACK_ihiB(buf, pos)
        pos += 10
        if 0 < n < 128:
            end = pos + n
            protocol_name = text_at(buf, pos + 1, end)
            pos = end
        else:
            protocol_name, pos = read_compact_string(buf, pos, "protocol_name")
        n = buf[pos]
        if 0 < n < 128:
            end = pos + n
            leader = text_at(buf, pos + 1, end)
            pos = end
        else:
            leader, pos = read_compact_string(buf, pos, "leader")
        n = buf[pos]
        if 0 < n < 128:
            end = pos + n
            member_id = text_at(buf, pos + 1, end)
            pos = end
        else:
            member_id, pos = read_compact_string(buf, pos, "member_id")
        n = buf[pos]
        members_count = n - 1
        if members_count < 127:
            pos += 1
        else:
            members_count, pos = read_compact_count(buf, pos)
        if not 0 <= members_count * 4 <= size - pos:
            raise bad_count_error(members_count, "members", size - pos)
        members: list[JoinGroupResponseMember] = []
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
                member_metadata = buf[pos + 1:end]
                pos = end
            else:
                member_metadata, pos = read_compact_bytes(buf, pos, "metadata")
            if buf[pos]:
                pos = skip_tags(buf, pos)
            else:
                pos += 1
            members.append(JoinGroupResponseMember(MemberId(member_member_id), member_group_instance_id, member_metadata))
        if buf[pos]:
            pos = skip_tags(buf, pos)
        else:
            pos += 1
    except (IndexError, error):
        raise Truncated("JoinGroupResponse") from None
    if pos > len(buf):
        raise Truncated("JoinGroupResponse")
    return JoinGroupResponse(throttle_time_ms, error_code, generation_id, None, protocol_name, MemberId(leader), False, MemberId(member_id), members)


def decode_response_v7(buf: bytes, pos: int) -> JoinGroupResponse:
    size = len(buf)
    try:
        throttle_time_ms, error_code, generation_id, n = _UNPACK_ihiB(buf, pos)
        pos += 10
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
            leader = text_at(buf, pos + 1, end)
            pos = end
        else:
            leader, pos = read_compact_string(buf, pos, "leader")
        n = buf[pos]
        if 0 < n < 128:
            end = pos + n
            member_id = text_at(buf, pos + 1, end)
            pos = end
        else:
            member_id, pos = read_compact_string(buf, pos, "member_id")
        n = buf[pos]
        members_count = n - 1
        if members_count < 127:
            pos += 1
        else:
            members_count, pos = read_compact_count(buf, pos)
        if not 0 <= members_count * 4 <= size - pos:
            raise bad_count_error(members_count, "members", size - pos)
        members: list[JoinGroupResponseMember] = []
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
                member_metadata = buf[pos + 1:end]
                pos = end
            else:
                member_metadata, pos = read_compact_bytes(buf, pos, "metadata")
            if buf[pos]:
                pos = skip_tags(buf, pos)
            else:
                pos += 1
            members.append(JoinGroupResponseMember(MemberId(member_member_id), member_group_instance_id, member_metadata))
        if buf[pos]:
            pos = skip_tags(buf, pos)
        else:
            pos += 1
    except (IndexError, error):
        raise Truncated("JoinGroupResponse") from None
    if pos > len(buf):
        raise Truncated("JoinGroupResponse")
    return JoinGroupResponse(throttle_time_ms, error_code, generation_id, protocol_type, protocol_name, MemberId(leader), False, MemberId(member_id), members)


decode_response_v8 = decode_response_v7


def decode_response_v9(buf: bytes, pos: int) -> JoinGroupResponse:
    size = len(buf)
    try:
        throttle_time_ms, error_code, generation_id, n = _UNPACK_ihiB(buf, pos)
        pos += 10
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
            leader = text_at(buf, pos + 1, end)
            pos = end
        else:
            leader, pos = read_compact_string(buf, pos, "leader")
        skip_assignment, n = _UNPACK_tB(buf, pos)
        pos += 1
        if 0 < n < 128:
            end = pos + n
            member_id = text_at(buf, pos + 1, end)
            pos = end
        else:
            member_id, pos = read_compact_string(buf, pos, "member_id")
        n = buf[pos]
        members_count = n - 1
        if members_count < 127:
            pos += 1
        else:
            members_count, pos = read_compact_count(buf, pos)
        if not 0 <= members_count * 4 <= size - pos:
            raise bad_count_error(members_count, "members", size - pos)
        members: list[JoinGroupResponseMember] = []
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
                member_metadata = buf[pos + 1:end]
                pos = end
            else:
                member_metadata, pos = read_compact_bytes(buf, pos, "metadata")
            if buf[pos]:
                pos = skip_tags(buf, pos)
            else:
                pos += 1
            members.append(JoinGroupResponseMember(MemberId(member_member_id), member_group_instance_id, member_metadata))
        if buf[pos]:
            pos = skip_tags(buf, pos)
        else:
            pos += 1
    except (IndexError, error):
        raise Truncated("JoinGroupResponse") from None
    if pos > len(buf):
        raise Truncated("JoinGroupResponse")
    return JoinGroupResponse(throttle_time_ms, error_code, generation_id, protocol_type, protocol_name, MemberId(leader), skip_assignment, MemberId(member_id), members)


def encode_response_v0(message: JoinGroupResponse) -> bytes:
    out: list[bytes] = []
    out.append(_PACK_hi(message.error_code, message.generation_id))
    if message.protocol_name is None:
        raise UnexpectedNull("protocol_name")
    out.append(pack_string(message.protocol_name))
    out.append(pack_string(message.leader))
    out.append(pack_string(message.member_id))
    members = message.members
    out.append(PACK_INT32(len(members)))
    for member in members:
        out.append(pack_string(member.member_id))
        out.append(pack_bytes(member.metadata))
    return b"".join(out)


encode_response_v1 = encode_response_v0


def encode_response_v2(message: JoinGroupResponse) -> bytes:
    out: list[bytes] = []
    out.append(_PACK_ihi(message.throttle_time_ms, message.error_code, message.generation_id))
    if message.protocol_name is None:
        raise UnexpectedNull("protocol_name")
    out.append(pack_string(message.protocol_name))
    out.append(pack_string(message.leader))
    out.append(pack_string(message.member_id))
    members = message.members
    out.append(PACK_INT32(len(members)))
    for member in members:
        out.append(pack_string(member.member_id))
        out.append(pack_bytes(member.metadata))
    return b"".join(out)


encode_response_v3 = encode_response_v2


encode_response_v4 = encode_response_v2


def encode_response_v5(message: JoinGroupResponse) -> bytes:
    out: list[bytes] = []
    out.append(_PACK_ihi(message.throttle_time_ms, message.error_code, message.generation_id))
    if message.protocol_name is None:
        raise UnexpectedNull("protocol_name")
    out.append(pack_string(message.protocol_name))
    out.append(pack_string(message.leader))
    out.append(pack_string(message.member_id))
    members = message.members
    out.append(PACK_INT32(len(members)))
    for member in members:
        out.append(pack_string(member.member_id))
        out.append(NULL_INT16 if member.group_instance_id is None else pack_string(member.group_instance_id))
        out.append(pack_bytes(member.metadata))
    return b"".join(out)


def encode_response_v6(message: JoinGroupResponse) -> bytes:
    out: list[bytes] = []
    out.append(_PACK_ihi(message.throttle_time_ms, message.error_code, message.generation_id))
    if message.protocol_name is None:
        raise UnexpectedNull("protocol_name")
    raw = message.protocol_name.encode()
    n = len(raw) + 1
    out.append(UVARINT[n] + raw if n < 128 else pack_compact_string(message.protocol_name))
    raw = message.leader.encode()
    n = len(raw) + 1
    out.append(UVARINT[n] + raw if n < 128 else pack_compact_string(message.leader))
    raw = message.member_id.encode()
    n = len(raw) + 1
    out.append(UVARINT[n] + raw if n < 128 else pack_compact_string(message.member_id))
    members = message.members
    n = len(members) + 1
    out.append(UVARINT[n] if n < 128 else pack_uvarint(n))
    for member in members:
        raw = member.member_id.encode()
        n = len(raw) + 1
        out.append(UVARINT[n] + raw if n < 128 else pack_compact_string(member.member_id))
        out.append(b"\0" if member.group_instance_id is None else pack_compact_string(member.group_instance_id))
        raw = member.metadata
        n = len(raw) + 1
        out.append(UVARINT[n] + raw if n < 128 else pack_compact_bytes(member.metadata))
        out.append(b"\0")
    out.append(b"\0")
    return b"".join(out)


def encode_response_v7(message: JoinGroupResponse) -> bytes:
    out: list[bytes] = []
    out.append(_PACK_ihi(message.throttle_time_ms, message.error_code, message.generation_id))
    out.append(b"\0" if message.protocol_type is None else pack_compact_string(message.protocol_type))
    out.append(b"\0" if message.protocol_name is None else pack_compact_string(message.protocol_name))
    raw = message.leader.encode()
    n = len(raw) + 1
    out.append(UVARINT[n] + raw if n < 128 else pack_compact_string(message.leader))
    raw = message.member_id.encode()
    n = len(raw) + 1
    out.append(UVARINT[n] + raw if n < 128 else pack_compact_string(message.member_id))
    members = message.members
    n = len(members) + 1
    out.append(UVARINT[n] if n < 128 else pack_uvarint(n))
    for member in members:
        raw = member.member_id.encode()
        n = len(raw) + 1
        out.append(UVARINT[n] + raw if n < 128 else pack_compact_string(member.member_id))
        out.append(b"\0" if member.group_instance_id is None else pack_compact_string(member.group_instance_id))
        raw = member.metadata
        n = len(raw) + 1
        out.append(UVARINT[n] + raw if n < 128 else pack_compact_bytes(member.metadata))
        out.append(b"\0")
    out.append(b"\0")
    return b"".join(out)


encode_response_v8 = encode_response_v7


def encode_response_v9(message: JoinGroupResponse) -> bytes:
    out: list[bytes] = []
    out.append(_PACK_ihi(message.throttle_time_ms, message.error_code, message.generation_id))
    out.append(b"\0" if message.protocol_type is None else pack_compact_string(message.protocol_type))
    out.append(b"\0" if message.protocol_name is None else pack_compact_string(message.protocol_name))
    raw = message.leader.encode()
    n = len(raw) + 1
    out.append(UVARINT[n] + raw if n < 128 else pack_compact_string(message.leader))
    out.append(_PACK_t(message.skip_assignment))
    raw = message.member_id.encode()
    n = len(raw) + 1
    out.append(UVARINT[n] + raw if n < 128 else pack_compact_string(message.member_id))
    members = message.members
    n = len(members) + 1
    out.append(UVARINT[n] if n < 128 else pack_uvarint(n))
    for member in members:
        raw = member.member_id.encode()
        n = len(raw) + 1
        out.append(UVARINT[n] + raw if n < 128 else pack_compact_string(member.member_id))
        out.append(b"\0" if member.group_instance_id is None else pack_compact_string(member.group_instance_id))
        raw = member.metadata
        n = len(raw) + 1
        out.append(UVARINT[n] + raw if n < 128 else pack_compact_bytes(member.metadata))
        out.append(b"\0")
    out.append(b"\0")
    return b"".join(out)


CODECS: Final[dict[int, Codec[JoinGroupRequest, JoinGroupResponse]]] = {
    0: Codec(decode_request_v0, encode_response_v0, decode_response_v0, encode_request_v0, False),
    1: Codec(decode_request_v1, encode_response_v1, decode_response_v1, encode_request_v1, False),
    2: Codec(decode_request_v2, encode_response_v2, decode_response_v2, encode_request_v2, False),
    3: Codec(decode_request_v3, encode_response_v3, decode_response_v3, encode_request_v3, False),
    4: Codec(decode_request_v4, encode_response_v4, decode_response_v4, encode_request_v4, False),
    5: Codec(decode_request_v5, encode_response_v5, decode_response_v5, encode_request_v5, False),
    6: Codec(decode_request_v6, encode_response_v6, decode_response_v6, encode_request_v6, True),
    7: Codec(decode_request_v7, encode_response_v7, decode_response_v7, encode_request_v7, True),
    8: Codec(decode_request_v8, encode_response_v8, decode_response_v8, encode_request_v8, True),
    9: Codec(decode_request_v9, encode_response_v9, decode_response_v9, encode_request_v9, True),
}

SCHEMA: Final = ApiSchema(ApiKey.JOIN_GROUP, JoinGroupRequest, JoinGroupResponse, CODECS)
