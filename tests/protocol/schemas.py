# SPDX-License-Identifier: Apache-2.0
"""Messages as plain dictionaries, by kafka-python's schemas: drawn, built as either side's objects, and encoded.

What is tested is generated from our own reading of the schemas; this goes by kafka-python's, and its encoder is
the plainest one possible, so that the three can be compared.
"""

import re
import struct
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import pytest
from hypothesis import strategies as st

from protocol import hot
from protocol.apis import ApiKey
from protocol.codec import Codec
from protocol.errors import ProtocolError
from protocol.kafka_python_messages import find_request_and_response_classes
from protocol.message_codecs import find_message_codec
from protocol.wire import ZERO_UUID, pack_uvarint
from tests.support.apis import FIRST_FLEXIBLE, SUPPORTED

Values = dict[str, Any]
NO_TAGS: Final = b"\0"
FIXED: Final = {"bool": "?", "int8": "b", "int16": "h", "uint16": "H", "int32": "i", "int64": "q"}
INT_BITS: Final = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}


@dataclass(frozen=True)
class Case:
    """One message and version."""

    api: ApiKey
    kind: str
    version: int

    def __str__(self) -> str:
        return f"{self.api.name}-{self.kind}-v{self.version}"

    @property
    def cls(self) -> Any:
        """kafka-python's class."""
        return find_request_and_response_classes(self.api)[self.kind == "response"]

    @property
    def schema(self) -> Any:
        """kafka-python's field tree."""
        return self.cls._struct

    @property
    def flexible(self) -> bool:
        return self.version >= FIRST_FLEXIBLE[self.api]

    @property
    def codec(self) -> Codec[Any, Any]:
        return find_message_codec(self.api, self.version)

    @property
    def decode(self) -> Callable[[bytes, int], Any]:
        """The decoder; of a request that can be read in steps it reads both ways, which must come to the same."""
        if self.kind == "response":
            return self.codec.decode_response
        if self.codec.decode_request_in_steps is None:
            return self.codec.decode_request
        return self._decode_both_ways

    def _decode_both_ways(self, body: bytes, pos: int) -> Any:
        steps = self.codec.decode_request_in_steps
        assert steps is not None
        try:
            message = self.codec.decode_request(body, pos)
        except ProtocolError as error:
            with pytest.raises(type(error), match=f"^{re.escape(str(error))}$"):
                all_at_once(steps(body, pos))
            raise
        assert all_at_once(steps(body, pos)) == message
        return message

    @property
    def encode(self) -> Callable[[Any], bytes]:
        return self.codec.encode_request if self.kind == "request" else self.codec.encode_response


def all_at_once(steps: Generator[None, None, Any]) -> Any:
    """What the steps come to."""
    try:
        while True:
            next(steps)
    except StopIteration as done:
        return done.value


HOT_APIS: Final = tuple(ApiKey(key) for key in hot.SCHEMAS)
COLD_APIS: Final = tuple(api for api in SUPPORTED if api not in HOT_APIS)


def cases(apis: tuple[ApiKey, ...]) -> list[Case]:
    """Every message and version of these APIs."""
    return [
        Case(api, kind, version)
        for api in apis
        for version in range(SUPPORTED[api].min, SUPPORTED[api].max + 1)
        for kind in ("request", "response")
    ]


def messages(apis: tuple[ApiKey, ...]) -> list[list[Case]]:
    """The versions of every message of these APIs."""
    grouped: dict[tuple[ApiKey, str], list[Case]] = {}
    for case in cases(apis):
        grouped.setdefault((case.api, case.kind), []).append(case)
    return list(grouped.values())


def message_name(versions: list[Case]) -> str:
    """A name for a test."""
    return f"{versions[0].api.name}-{versions[0].kind}"


def present(schema: Any, version: int) -> list[Any]:
    """The fields that this version has, tagged ones included."""
    return [field for field in schema.fields.values() if field.for_version_q(version)]


# --- drawing -------------------------------------------------------------------------------------------------------

# around the places where a varint grows by a byte, and where a classic length ends
_LENGTHS: Final = st.sampled_from([0, 1, 126, 127, 128])
_LONG_LENGTHS: Final = _LENGTHS | st.sampled_from([16_382, 16_383, 16_384, 32_767])
_TEXT: Final = st.text(st.characters(codec="utf-8"), max_size=20)
_BITFIELDS: Final = st.none() | st.sets(st.integers(0, 31)).filter({31}.__ne__)


def _scalars(kind: str, lengths: st.SearchStrategy[int]) -> st.SearchStrategy[Any]:
    if kind in INT_BITS:
        top = 1 << (INT_BITS[kind] - 1)
        return st.integers(-top, top - 1)
    blobs = st.binary(max_size=20) | lengths.map(bytes)
    return {
        "uint16": st.integers(0, 0xFFFF),
        "bool": st.booleans(),
        "string": _TEXT | lengths.map("x".__mul__),
        "bytes": blobs,
        "records": blobs,
        "uuid": st.none() | st.uuids(),
        "bitfield": _BITFIELDS,
    }[kind]


def _items(schema: Any, version: int) -> st.SearchStrategy[list[Values]]:
    item = values(schema, version, lengths=_LENGTHS)
    if any(field.is_array() for field in present(schema, version)):
        return st.lists(item, max_size=2)
    # long enough for a count of two bytes; the same item again and again keeps the drawing cheap
    repeated = st.builds(lambda one, count: [one] * count, item, st.integers(4, 140))
    return st.lists(item, max_size=3) | st.builds(list.__add__, st.lists(item, max_size=2), repeated)


def _field_values(field: Any, version: int, lengths: st.SearchStrategy[int]) -> st.SearchStrategy[Any]:
    drawn: st.SearchStrategy[Any]
    if field.is_struct_array():
        drawn = _items(field.array_of, version)
    elif field.is_array():
        drawn = st.lists(_scalars(field.array_of.type_str, _LENGTHS), max_size=5)
    elif field.is_struct():
        drawn = values(field, version, lengths=_LENGTHS)
    else:
        drawn = _scalars(field.type_str, lengths)
    # a tagged struct that is left out reads as None
    may_be_null = field.nullable_for_version_q(version) or (field.is_struct() and field.tag is not None)
    return st.none() | drawn if may_be_null else drawn


def values(
    schema: Any, version: int, *, lengths: st.SearchStrategy[int] = _LONG_LENGTHS
) -> st.SearchStrategy[Values]:
    """Values for all fields that the version has."""
    return st.fixed_dictionaries(
        {field.name: _field_values(field, version, lengths) for field in present(schema, version)}
    )


def sample(schema: Any, version: int) -> Values:
    """The smallest values where every array has an item and nothing is null."""
    return {field.name: _sample_field(field, version) for field in present(schema, version)}


def _sample_field(field: Any, version: int) -> Any:
    if field.is_struct_array():
        return [sample(field.array_of, version)]
    if field.is_struct():
        return sample(field, version)
    kind = field.array_of.type_str if field.is_array() else field.type_str
    scalar = {
        "string": "ab",
        "bytes": b"cd",
        "records": b"ef",
        "uuid": UUID(int=7),
        "bitfield": {3},
        "bool": True,
    }
    value = scalar.get(kind, 1)
    return [value] if field.is_array() else value


# --- as objects ----------------------------------------------------------------------------------------------------


def to_kafka_python(cls: Any, schema: Any, drawn: Values, version: int) -> Any:
    """The message as kafka-python's object."""
    built = {}
    for field in present(schema, version):
        value = drawn[field.name]
        if value is not None and field.is_struct_array():
            value = [to_kafka_python(field.data_class, field.array_of, item, version) for item in value]
        elif value is not None and field.is_struct():
            value = to_kafka_python(field.data_class, field, value, version)
        built[field.name] = value
    return cls(version=version, **built)


def to_hot(name: str, schema: Any, drawn: Values, version: int) -> Any:
    """The message as an object of `protocol.hot`."""
    built = {}
    for field in present(schema, version):
        value = drawn[field.name]
        if value is not None and field.is_struct_array():
            value = [to_hot(field.type_str, field.array_of, item, version) for item in value]
        elif field.type_str == "uuid":
            value = ZERO_UUID if value is None else value.bytes
        built[field.name] = value
    return getattr(hot, name)(**built)


# --- as bytes ------------------------------------------------------------------------------------------------------


class ReferenceEncoder:
    """Writes messages in the plainest way, their tagged fields left out.

    `tags` is what every section of tagged fields holds; `instead` gives the bytes to write for a field, by the
    `id()` of the field in the schema.
    """

    def __init__(
        self,
        version: int,
        *,
        flexible: bool,
        tags: bytes = NO_TAGS,
        instead: Mapping[int, bytes] | None = None,
    ) -> None:
        self._version = version
        self._flexible = flexible
        self._tags = tags if flexible else b""
        self._instead = instead or {}

    def encode(self, schema: Any, drawn: Values) -> bytes:
        fields = schema.untagged_fields(self._version)
        return b"".join(self._field(field, drawn[field.name]) for field in fields) + self._tags

    def _field(self, field: Any, value: Any) -> bytes:
        if id(field) in self._instead:
            return self._instead[id(field)]
        if field.is_struct():
            is_there = b"\1" if field.nullable_for_version_q(self._version) else b""
            return is_there + self.encode(field, value)
        if not field.is_array():
            return self._scalar(field.type_str, value)
        out = self._length(None if value is None else len(value), ">i")
        for item in value or ():
            if field.is_struct_array():
                out += self.encode(field.array_of, item)
            else:
                out += self._scalar(field.array_of.type_str, item)
        return out

    def _scalar(self, kind: str, value: Any) -> bytes:
        if kind in FIXED:
            return struct.pack(">" + FIXED[kind], value)
        if kind == "uuid":
            return ZERO_UUID if value is None else bytes(value.bytes)
        if kind == "bitfield":
            return struct.pack(">I", 1 << 31 if value is None else sum(1 << bit for bit in value))
        raw = value.encode() if isinstance(value, str) else value
        return self._length(None if raw is None else len(raw), ">h" if kind == "string" else ">i") + (
            raw or b""
        )

    def _length(self, size: int | None, classic: str) -> bytes:
        if self._flexible:
            return pack_uvarint(0 if size is None else size + 1)
        return struct.pack(classic, -1 if size is None else size)


def variable_fields(schema: Any, version: int) -> list[Any]:
    """All untagged fields with a length, nested ones too."""
    found = []
    for field in schema.untagged_fields(version):
        if field.is_struct_array():
            found += [field, *variable_fields(field.array_of, version)]
        elif field.is_struct():
            found += variable_fields(field, version)
        elif field.is_array() or field.type_str in {"string", "bytes", "records"}:
            found.append(field)
    return found
