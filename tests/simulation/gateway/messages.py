# SPDX-License-Identifier: Apache-2.0
"""Requests and answers of any api as plain fields; what is left out has the schema's default."""

from collections.abc import Mapping
from typing import Any

from protocol import hot
from protocol.apis import ApiKey
from protocol.headers import (
    RequestHeader,
    decode_request_header,
    encode_request_header,
    encode_response,
    has_flexible_response_header,
)
from protocol.kafka_python_messages import find_request_and_response_classes
from protocol.message_codecs import find_message_codec
from protocol.wire import ZERO_UUID, skip_tags
from tests.protocol.schemas import present

Fields = Mapping[str, Any]


def request(api: ApiKey, version: int, number: int, client_id: str, **fields: Any) -> bytes:
    """A request, with its length."""
    codec = find_message_codec(api, version)
    header = encode_request_header(RequestHeader(api, version, number, client_id), flexible=codec.flexible)
    frame = header + codec.encode_request(_message(api, 0, version, fields))
    return len(frame).to_bytes(4, "big") + frame


def answer(api: ApiKey, version: int, number: int, fields: Fields) -> bytes:
    """An answer, with its length."""
    codec = find_message_codec(api, version)
    body = codec.encode_response(_message(api, 1, version, fields))
    return encode_response(number, body, has_flexible_response_header(api, codec.flexible))


def read_request(frame: bytes) -> tuple[RequestHeader, Any]:
    """The header and the message of a request without its length. Raises ProtocolError."""
    api, version = int.from_bytes(frame[:2], "big"), int.from_bytes(frame[2:4], "big")
    codec = find_message_codec(api, version)
    header, pos = decode_request_header(frame, codec.flexible)
    return header, codec.decode_request(frame, pos)


def read_answer(api: ApiKey, version: int, frame: bytes) -> Any:
    """The message of an answer without its length. Raises ProtocolError."""
    codec = find_message_codec(api, version)
    flexible = has_flexible_response_header(api, codec.flexible)
    return codec.decode_response(frame, skip_tags(frame, 4) if flexible else 4)


def _message(api: ApiKey, kind: int, version: int, fields: Fields) -> Any:
    cls = find_request_and_response_classes(api)[kind]
    is_hot = int(api) in hot.SCHEMAS
    return _built(cls, cls.__name__, cls._struct, version, fields, is_hot)


def _built(cls: Any, name: str, schema: Any, version: int, fields: Fields, is_hot: bool) -> Any:
    unknown = fields.keys() - schema.fields.keys()
    assert not unknown, f"{name} has no {', '.join(sorted(unknown))}"
    values = {}
    for field in present(schema, version):
        value = fields.get(field.name, field.default)
        if value is not None and field.is_struct_array():
            make = (field.data_class, field.type_str, field.array_of, version)
            value = [_built(*make, item, is_hot) for item in value]
        elif value is not None and field.is_struct():
            if field.name not in fields:
                continue
            value = _built(field.data_class, field.type_str, field, version, value, is_hot)
        elif is_hot and field.type_str == "uuid":
            value = ZERO_UUID if value is None else value.bytes
        values[field.name] = value
    return getattr(hot, name)(**values) if is_hot else cls(version=version, **values)
