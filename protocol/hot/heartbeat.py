# SPDX-License-Identifier: Apache-2.0
# Generated from Apache Kafka's message schemas by `python -m protocol.codegen`. Do not edit.
# fmt: off
"""Heartbeat v0-v4: the request and the response, both ways."""

from collections.abc import Callable
from struct import Struct, error
from typing import Final

from protocol.apis import ApiKey
from protocol.codec import ApiSchema, Codec
from protocol.compiled_struct import FieldsValue
from protocol.errors import Truncated
from protocol.fixed_integers import int32_at
from protocol.mypyc_shim import mypyc_attr
from protocol.newtypes import GroupId, MemberId
from protocol.wire import (
    NULL_INT16,
    UVARINT,
    bad_length_error,
    pack_compact_string,
    pack_int32,
    pack_partition_error,
    pack_string,
    pack_tagged_partition_error,
    read_compact_nullable_string,
    read_compact_string,
    skip_tags,
    text_at,
)

_UNPACK_h: Final[Callable[[bytes, int], tuple[int]]] = Struct(">h").unpack_from
_UNPACK_ih: Final[Callable[[bytes, int], tuple[int, int]]] = Struct(">ih").unpack_from
_PACK_h: Final[Callable[..., bytes]] = Struct(">h").pack


@mypyc_attr(acyclic=True)
class HeartbeatRequest(FieldsValue):
    __match_args__: Final = ("group_id", "generation_id", "member_id", "group_instance_id",)
    __slots__ = __match_args__

    def __init__(
        self,
        group_id: GroupId = GroupId(""),
        generation_id: int = 0,
        member_id: MemberId = MemberId(""),
        group_instance_id: str | None = None,
    ) -> None:
        self.group_id: Final = group_id
        self.generation_id: Final = generation_id
        self.member_id: Final = member_id
        self.group_instance_id: Final = group_instance_id


@mypyc_attr(acyclic=True)
class HeartbeatResponse(FieldsValue):
    __match_args__: Final = ("throttle_time_ms", "error_code",)
    __slots__ = __match_args__

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
    ) -> None:
        self.throttle_time_ms: Final = throttle_time_ms
        self.error_code: Final = error_code


def decode_request_v0(buf: bytes, pos: int) -> HeartbeatRequest:
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
    except (IndexError, error):
        raise Truncated("HeartbeatRequest") from None
    if pos > len(buf):
        raise Truncated("HeartbeatRequest")
    return HeartbeatRequest(GroupId(group_id), generation_id, MemberId(member_id), None)


decode_request_v1 = decode_request_v0


decode_request_v2 = decode_request_v0


def decode_request_v3(buf: bytes, pos: int) -> HeartbeatRequest:
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
    except (IndexError, error):
        raise Truncated("HeartbeatRequest") from None
    if pos > len(buf):
        raise Truncated("HeartbeatRequest")
    return HeartbeatRequest(GroupId(group_id), generation_id, MemberId(member_id), group_instance_id)


def decode_request_v4(buf: bytes, pos: int) -> HeartbeatRequest:
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
        if buf[pos]:
            pos = skip_tags(buf, pos)
        else:
            pos += 1
    except (IndexError, error):
        raise Truncated("HeartbeatRequest") from None
    if pos > len(buf):
        raise Truncated("HeartbeatRequest")
    return HeartbeatRequest(GroupId(group_id), generation_id, MemberId(member_id), group_instance_id)


def encode_request_v0(message: HeartbeatRequest) -> bytes:
    out: list[bytes] = []
    out.append(pack_string(message.group_id))
    out.append(pack_int32(message.generation_id))
    out.append(pack_string(message.member_id))
    return b"".join(out)


encode_request_v1 = encode_request_v0


encode_request_v2 = encode_request_v0


def encode_request_v3(message: HeartbeatRequest) -> bytes:
    out: list[bytes] = []
    out.append(pack_string(message.group_id))
    out.append(pack_int32(message.generation_id))
    out.append(pack_string(message.member_id))
    out.append(NULL_INT16 if message.group_instance_id is None else pack_string(message.group_instance_id))
    return b"".join(out)


def encode_request_v4(message: HeartbeatRequest) -> bytes:
    out: list[bytes] = []
    raw = message.group_id.encode()
    n = len(raw) + 1
    out.append(UVARINT[n] + raw if n < 128 else pack_compact_string(message.group_id))
    out.append(pack_int32(message.generation_id))
    raw = message.member_id.encode()
    n = len(raw) + 1
    out.append(UVARINT[n] + raw if n < 128 else pack_compact_string(message.member_id))
    out.append(b"\0" if message.group_instance_id is None else pack_compact_string(message.group_instance_id))
    out.append(b"\0")
    return b"".join(out)


def decode_response_v0(buf: bytes, pos: int) -> HeartbeatResponse:
    try:
        (error_code,) = _UNPACK_h(buf, pos)
        pos += 2
    except (IndexError, error):
        raise Truncated("HeartbeatResponse") from None
    if pos > len(buf):
        raise Truncated("HeartbeatResponse")
    return HeartbeatResponse(0, error_code)


def decode_response_v1(buf: bytes, pos: int) -> HeartbeatResponse:
    try:
        throttle_time_ms, error_code = _UNPACK_ih(buf, pos)
        pos += 6
    except (IndexError, error):
        raise Truncated("HeartbeatResponse") from None
    if pos > len(buf):
        raise Truncated("HeartbeatResponse")
    return HeartbeatResponse(throttle_time_ms, error_code)


decode_response_v2 = decode_response_v1


decode_response_v3 = decode_response_v1


def decode_response_v4(buf: bytes, pos: int) -> HeartbeatResponse:
    try:
        throttle_time_ms, error_code = _UNPACK_ih(buf, pos)
        pos += 6
        if buf[pos]:
            pos = skip_tags(buf, pos)
        else:
            pos += 1
    except (IndexError, error):
        raise Truncated("HeartbeatResponse") from None
    if pos > len(buf):
        raise Truncated("HeartbeatResponse")
    return HeartbeatResponse(throttle_time_ms, error_code)


def encode_response_v0(message: HeartbeatResponse) -> bytes:
    return _PACK_h(message.error_code)


def encode_response_v1(message: HeartbeatResponse) -> bytes:
    return pack_partition_error(message.throttle_time_ms, message.error_code)


encode_response_v2 = encode_response_v1


encode_response_v3 = encode_response_v1


def encode_response_v4(message: HeartbeatResponse) -> bytes:
    return pack_tagged_partition_error(message.throttle_time_ms, message.error_code)


CODECS: Final[dict[int, Codec[HeartbeatRequest, HeartbeatResponse]]] = {
    0: Codec(decode_request_v0, encode_response_v0, decode_response_v0, encode_request_v0, False),
    1: Codec(decode_request_v1, encode_response_v1, decode_response_v1, encode_request_v1, False),
    2: Codec(decode_request_v2, encode_response_v2, decode_response_v2, encode_request_v2, False),
    3: Codec(decode_request_v3, encode_response_v3, decode_response_v3, encode_request_v3, False),
    4: Codec(decode_request_v4, encode_response_v4, decode_response_v4, encode_request_v4, True),
}

SCHEMA: Final = ApiSchema(ApiKey.HEARTBEAT, HeartbeatRequest, HeartbeatResponse, CODECS)
