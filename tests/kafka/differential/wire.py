# SPDX-License-Identifier: Apache-2.0
"""Frames of requests, right and wrong ones, and one blocking socket to send them over."""

import select
import socket
import struct
from collections.abc import Mapping
from typing import Any, Final

from protocol.apis import ApiKey
from protocol.kafka_python_messages import find_request_and_response_classes
from tests.protocol.schemas import NO_TAGS, ReferenceEncoder
from tests.support.apis import FIRST_FLEXIBLE

REPLY_TIMEOUT_S: Final = 120.0


def request_header(
    api_key: int, version: int, correlation_id: int, client_id: str | None, tags: bytes | None
) -> bytes:
    """A request header; `tags` None: version 1, without tagged fields."""
    name = None if client_id is None else client_id.encode()
    length = -1 if name is None else len(name)
    return struct.pack(">hhih", api_key, version, correlation_id, length) + (name or b"") + (tags or b"")


def request_body(api: ApiKey, version: int, fields: Mapping[str, Any], tags: bytes = NO_TAGS) -> bytes:
    """A request's body; fields that are left out have the schema's default, those that it lacks are ignored.

    Null is written wherever it is given, also where the schema does not allow it.
    """
    schema = find_request_and_response_classes(api)[0]._struct
    flexible = version >= FIRST_FLEXIBLE[api]
    return ReferenceEncoder(version, flexible=flexible, tags=tags).encode(
        schema, _complete(schema, version, fields)
    )


def _complete(schema: Any, version: int, given: Mapping[str, Any]) -> dict[str, Any]:
    unknown = given.keys() - schema.fields.keys()
    assert not unknown, f"{schema.name} has no {', '.join(sorted(unknown))}"
    values = {}
    for field in schema.untagged_fields(version):
        value = given.get(field.name, field.default)
        if value is not None and field.is_struct_array():
            value = [_complete(field.array_of, version, item) for item in value]
        values[field.name] = value
    return values


def frame(data: bytes) -> bytes:
    """The data with its length before it."""
    return struct.pack(">i", len(data)) + data


class Wire:
    """One connection: frames out, frames in."""

    def __init__(self, bootstrap: str) -> None:
        host, port = bootstrap.rsplit(":", 1)
        self._socket = socket.create_connection((host, int(port)), timeout=REPLY_TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._input = self._socket.makefile("rb")

    def send(self, data: bytes) -> None:
        """Send these bytes as they are."""
        self._socket.sendall(data)

    def receive(self) -> bytes | None:
        """The next frame; None when the server has closed. Raises TimeoutError when nothing comes for long."""
        try:
            head = self._input.read(4)
            if len(head) < 4:
                return None
            (length,) = struct.unpack(">i", head)
            data = self._input.read(length)
        except (ConnectionResetError, BrokenPipeError):
            return None
        return data if len(data) == length else None

    def is_silent(self, seconds: float) -> bool:
        """Whether nothing comes, and the server does not close, for so long."""
        readable, _, _ = select.select([self._socket], [], [], seconds)
        return not readable

    def close(self) -> None:
        """Close the socket."""
        self._input.close()
        self._socket.close()
