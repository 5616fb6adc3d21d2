# SPDX-License-Identifier: Apache-2.0
"""Bytes that are no proper request: headers, lengths, nulls and tagged fields, in every api and version."""

import struct
from collections.abc import Iterator
from typing import Any

from protocol.apis import ApiKey
from protocol.kafka_python_messages import find_request_and_response_classes
from protocol.wire import pack_uvarint
from tests.kafka.differential.catalogue import every, scenario
from tests.kafka.differential.groups import stable_group
from tests.kafka.differential.ordinary import fetch_group
from tests.kafka.differential.script import Link, Script
from tests.kafka.differential.wire import frame, request_header
from tests.protocol.schemas import ReferenceEncoder, sample, variable_fields
from tests.support.apis import FIRST_FLEXIBLE, SUPPORTED

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
VERSIONS = {
    f"{api.name} v{version}": (api, version)
    for api, versions in sorted(SUPPORTED.items())
    for version in range(versions.min, versions.max + 1)
    if find_request_and_response_classes(api)[0]._struct.untagged_fields(version)
}


def _header(api: int, version: int, correlation_id: int = 1, client_id: str | None = "c") -> bytes:
    flexible = api in SUPPORTED and version >= FIRST_FLEXIBLE[ApiKey(api)]
    return request_header(api, version, correlation_id, client_id, b"\0" if flexible else None)


def _send(s: Script, data: bytes, told: str, api: int = ApiKey.HEARTBEAT, version: int = 4) -> None:
    """Send these bytes on a connection of their own and read what comes."""
    link = s.connect()
    s.note(told)
    link.send_bytes(api, version, data, {}, 1).reply()


# --- lengths in the body


def _lengths(kind: str, flexible: bool) -> Iterator[tuple[str, bytes]]:
    """Lengths that no field can have, and null."""
    if flexible:
        yield "null", pack_uvarint(0)
        yield "longer than the frame", pack_uvarint(1_000_000)
        yield "an endless length", b"\xff" * 6
        return
    form = ">h" if kind == "string" else ">i"
    yield "null", struct.pack(form, -1)
    yield "below null", struct.pack(form, -2)
    yield "longer than the frame", struct.pack(form, 30_000)


@scenario(request=VERSIONS)
def lengths_of_fields(s: Script, request: tuple[ApiKey, int]) -> None:
    api, version = request
    schema = find_request_and_response_classes(api)[0]._struct
    flexible = version >= FIRST_FLEXIBLE[api]
    values = sample(schema, version)
    for field in variable_fields(schema, version):
        if field.nullable_for_version_q(version):
            continue
        kind = "array" if field.is_array() else field.type_str
        for told, data in _lengths(kind, flexible):
            encoder = ReferenceEncoder(version, flexible=flexible, instead={id(field): data})
            body = encoder.encode(schema, values)
            _send(s, frame(_header(api, version) + body), f"{field.name}: {told}", api, version)


@scenario(request=VERSIONS)
def bodies_that_are_cut_off(s: Script, request: tuple[ApiKey, int]) -> None:
    api, version = request
    schema = find_request_and_response_classes(api)[0]._struct
    flexible = version >= FIRST_FLEXIBLE[api]
    body = ReferenceEncoder(version, flexible=flexible).encode(schema, sample(schema, version))
    for told, cut in (("without its last byte", body[:-1]), ("half", body[: len(body) // 2]), ("empty", b"")):
        _send(s, frame(_header(api, version) + cut), told, api, version)


# --- tagged fields, bytes after the body

GROUP_APIS = (
    ApiKey.OFFSET_FETCH,
    ApiKey.FIND_COORDINATOR,
    ApiKey.JOIN_GROUP,
    ApiKey.HEARTBEAT,
    ApiKey.LEAVE_GROUP,
    ApiKey.SYNC_GROUP,
    ApiKey.DESCRIBE_GROUPS,
    ApiKey.LIST_GROUPS,
    ApiKey.DELETE_GROUPS,
    ApiKey.OFFSET_DELETE,
    ApiKey.OFFSET_COMMIT,
)
LATEST = {api.name: api for api in GROUP_APIS}
TAGS = pack_uvarint(2) + pack_uvarint(7) + pack_uvarint(3) + b"abc" + pack_uvarint(100) + pack_uvarint(0)


@scenario(api=LATEST)
def bytes_after_the_body(s: Script, api: ApiKey) -> None:
    s.connect().ask(api, after_body=b"more than needed")


@scenario(api={name: api for name, api in LATEST.items() if api is not ApiKey.OFFSET_DELETE})
def unknown_tagged_fields(s: Script, api: ApiKey) -> None:
    a = s.connect()
    a.ask(api, header_tags=TAGS)
    a.ask(api, body_tags=TAGS)
    a.ask(api, header_tags=TAGS, body_tags=TAGS)


@scenario()
def tagged_fields_in_a_wrong_order(s: Script) -> None:
    a = s.connect()
    a.ask(
        ApiKey.HEARTBEAT,
        body_tags=pack_uvarint(2) + pack_uvarint(7) + pack_uvarint(0) + pack_uvarint(5) + pack_uvarint(0),
    )


@scenario()
def tagged_fields_that_are_cut_off(s: Script) -> None:
    for tags in (b"", b"\1", b"\1\7", b"\1\7\5ab", pack_uvarint(INT32_MAX)):
        s.connect().ask(ApiKey.HEARTBEAT, body_tags=tags)
        s.connect().ask(ApiKey.HEARTBEAT, header_tags=tags)


# --- headers


@scenario(api=[-1, 4, 38, 93, 999, 32_767, -32_768])
def apis_that_do_not_exist(s: Script, api: int) -> None:
    a = s.connect()
    a.send_body(api, 0, b"", {}).reply()


@scenario(
    differs="apis-and-features",
    api={
        "AddOffsetsToTxn": (25, 0),
        "ConsumerGroupDescribe": (69, 0),
    },
)
def apis_that_we_do_not_serve(s: Script, api: tuple[int, int]) -> None:
    bodies = {
        25: b"\0\1t" + bytes(8) + b"\0\0" + b"\0\1g",
        69: b"\1\0\0",
    }
    a = s.connect()
    a.send_body(api[0], api[1], bodies[api[0]], {}, header_tags=b"\0" if api[0] == 69 else None).reply()


@scenario(api={api.name: api for api in sorted(SUPPORTED) if api is not ApiKey.API_VERSIONS})
def versions_that_do_not_exist(s: Script, api: ApiKey) -> None:
    low, high = SUPPORTED[api]
    for version in (-1, low - 1, high + 1, 32_767):
        tags = b"\0" if version >= FIRST_FLEXIBLE[api] else None
        s.connect().send_body(api, version, b"\0" * 40, {}, header_tags=tags).reply()


@scenario(correlation_id=[INT32_MIN, -1, 0, INT32_MAX])
def correlation_ids(s: Script, correlation_id: int) -> None:
    a = s.connect()
    data = frame(_header(ApiKey.LIST_GROUPS, 0, correlation_id))
    a.send_bytes(ApiKey.LIST_GROUPS, 0, data, {}, correlation_id).reply()


@scenario(
    client={
        "null": b"\xff\xff",
        "empty": b"\0\0",
        "not UTF-8": b"\0\4a\xff\xfeb",
        "cut off": b"\0\4a\xff",
    }
)
def client_ids_as_bytes(s: Script, client: bytes) -> None:
    a = s.connect()
    group = s.group.encode()
    subscription = b"\0\0\0\0\0\0\xff\xff\xff\xff"
    body = struct.pack(">h", len(group)) + group + struct.pack(">ii", 30_000, 30_000)
    body += b"\0\0" + b"\0\x08consumer" + b"\0\0\0\1" + b"\0\5range" + struct.pack(">i", len(subscription))
    head = struct.pack(">hhi", ApiKey.JOIN_GROUP, 1, 1) + client
    data = frame(head + body + subscription)
    a.send_bytes(ApiKey.JOIN_GROUP, 1, data, {"client_id": client}, 1).reply()
    s.connect().describe()


@scenario(length=[-2, -32_768])
def negative_lengths_of_client_ids(s: Script, length: int) -> None:
    _send(s, frame(struct.pack(">hhih", ApiKey.HEARTBEAT, 4, 1, length) + b"\0" * 20), f"client id: {length}")


@scenario()
def headers_that_are_cut_off(s: Script) -> None:
    whole = _header(ApiKey.HEARTBEAT, 4)
    for size in range(1, len(whole)):
        _send(s, frame(whole[:size]), f"{size} bytes of a header")


@scenario(length=[0, -1, INT32_MIN, 104_857_601, INT32_MAX])
def lengths_of_frames(s: Script, length: int) -> None:
    _send(s, struct.pack(">i", length) + _header(ApiKey.HEARTBEAT, 4), f"a frame of {length} bytes")


@scenario()
def a_frame_in_pieces(s: Script) -> None:
    a = s.connect()
    data = frame(_header(ApiKey.LIST_GROUPS, 0))
    for piece in (data[:1], data[1:4], data[4:9]):
        a.wire.send(piece)
        s.settle()
    a.send_bytes(ApiKey.LIST_GROUPS, 0, data[9:], {}, 1).reply()


# --- text that is not UTF-8


def _describe_raw(link: Link, *groups: bytes) -> None:
    body = struct.pack(">i", len(groups)) + b"".join(struct.pack(">h", len(name)) + name for name in groups)
    link.send_body(ApiKey.DESCRIBE_GROUPS, 0, body, {"groups": list(groups)}).reply()


@scenario(
    name={
        "bad byte": b"a\xffb",
        "cut short": b"a\xe2\x82",
        "cut short within": b"\xe2\x82b",
        "overlong": b"\xc0\xaf",
        "overlong of three": b"\xe0\x80\xaf",
        "too large": b"\xf4\x90\x80\x80",
        "five bytes": b"\xf8\x88\x80\x80\x80",
        "continuation alone": b"\x80\xbf",
        "zero": b"a\0b",
        "four bytes": b"\xf0\x9f\x98\x80",
        "cut four bytes": b"\xf0\x9f\x98",
    }
)
def group_ids_that_are_not_utf_8(s: Script, name: bytes) -> None:
    _describe_raw(s.connect(), name)


@scenario(differs="lone-surrogates", name={"one": b"\xed\xa0\x80", "a pair": b"\xed\xa0\xbd\xed\xb8\x80"})
def group_ids_with_surrogates(s: Script, name: bytes) -> None:
    _describe_raw(s.connect(), name)


# --- one after the other


@scenario()
def requests_behind_a_waiting_join(s: Script) -> None:
    group = stable_group(s)
    link = group.leader.link
    join = group.leader.rejoin()
    s.until("PreparingRebalance")
    behind = link.send(ApiKey.HEARTBEAT, **group.leader.current)
    fetch = link.send(ApiKey.OFFSET_FETCH, groups=[fetch_group(s.group, [])])
    behind.is_silent()
    group.follower.rejoin().reply()
    join.reply()
    behind.reply()
    fetch.reply()


@scenario()
def many_requests_at_once(s: Script) -> None:
    a = s.connect()
    asked = [a.send(ApiKey.OFFSET_COMMIT), a.send(ApiKey.OFFSET_FETCH), a.send(ApiKey.HEARTBEAT)]
    asked += [a.send(ApiKey.DESCRIBE_GROUPS), a.send(ApiKey.DELETE_GROUPS), a.send(ApiKey.OFFSET_FETCH)]
    for pending in asked:
        pending.reply()


@scenario()
def what_was_asked_before_a_bad_request_is_answered(s: Script) -> None:
    a = s.connect()
    first = a.send(ApiKey.OFFSET_COMMIT)
    second = a.send_body(ApiKey.HEARTBEAT, 0, b"", {"body": "cut off"})
    third = a.send(ApiKey.OFFSET_FETCH)
    first.reply()
    second.reply()
    third.reply()


@scenario()
def a_bad_request_ends_no_other_connection(s: Script) -> None:
    group = stable_group(s)
    waiting = group.leader.rejoin()
    s.until("PreparingRebalance")
    s.connect().send_body(ApiKey.HEARTBEAT, 0, b"", {"body": "cut off"}).reply()
    group.follower.rejoin().reply()
    waiting.reply()


@scenario(version=every(ApiKey.DESCRIBE_GROUPS, since=5))
def a_request_of_an_older_format(s: Script, version: int) -> None:
    body: Any = struct.pack(">i", 1) + b"\0\1g\0"
    s.connect().send_body(
        ApiKey.DESCRIBE_GROUPS, version, body, {"body": "as v4 has it"}, header_tags=b"\0"
    ).reply()
