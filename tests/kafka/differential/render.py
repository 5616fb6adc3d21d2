# SPDX-License-Identifier: Apache-2.0
"""Messages as lines of text that two servers can agree on: chance is taken out, everything else is shown.

Chance are the uuids in member ids and the ids of topics (numbered as they appear), addresses and cluster ids, and
the order of the arrays in `UNORDERED`. All other fields of the version are written as they came.
"""

import itertools
import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import find_request_and_response_classes
from tests.protocol.schemas import present

WIDTH: Final = 140
LONG_TEXT: Final = 100

UNORDERED: Final[Mapping[ApiKey, frozenset[str]]] = {
    # a hash map by member id, whose uuids are chance
    ApiKey.JOIN_GROUP: frozenset({"members"}),
    # the same, and the groups by the partition of the offsets topic that they are in
    ApiKey.DESCRIBE_GROUPS: frozenset({"members", "groups"}),
    ApiKey.DELETE_GROUPS: frozenset({"results"}),
    ApiKey.LIST_GROUPS: frozenset({"groups"}),
    # Scala maps and sets
    ApiKey.LIST_OFFSETS: frozenset({"topics", "partitions"}),
    ApiKey.METADATA: frozenset({"topics", "partitions"}),
    ApiKey.DESCRIBE_CONFIGS: frozenset({"configs"}),
    ApiKey.PRODUCE: frozenset({"responses", "partition_responses"}),
}
"""Arrays of responses that Kafka puts in the order of its hash maps: they are sorted."""

UNORDERED_IF_ALL: Final[Mapping[ApiKey, frozenset[str]]] = {
    ApiKey.OFFSET_FETCH: frozenset({"topics", "partitions"})
}
"""Arrays for which that holds when everything was asked for, by null in place of names."""

TEXTS: Final = frozenset(
    {
        ApiKey.FIND_COORDINATOR,
        ApiKey.CREATE_TOPICS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.DELETE_TOPICS,
        ApiKey.DESCRIBE_CONFIGS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.DESCRIBE_CLUSTER,
        ApiKey.PRODUCE,
    }
)
"""APIs whose error messages we word ourselves: that there is a text is compared, not which."""

LEFT_OUT: Final = frozenset({"min.insync.replicas"})
"""Settings of topics that are left out of answers: Kafka sets this one for the whole cluster by itself."""

OWN_ONLY: Final[Mapping[ApiKey, tuple[str, str]]] = {
    ApiKey.LIST_GROUPS: ("groups", "group_id"),
    ApiKey.METADATA: ("topics", "name"),
}
"""Responses that, asked for all, tell of the groups or topics of other scenarios as well: these are left out."""

CLUSTER_ID_LENGTH: Final = 22
"""Of those that servers make for themselves."""

_UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_NO_UUID: Final = UUID(int=0)

Fields = dict[str, Any]


class Names:
    """Gives chance values names that are the same in every play of a scenario."""

    def __init__(self, prefix: str, port: int, blobs: Mapping[bytes, str]) -> None:
        self._prefix = prefix
        self._port = port
        self._blobs = blobs
        self._uuids: dict[str, int] = {}
        self._topics: dict[UUID, str] = {}

    def know_topic(self, topic_id: UUID, name: str) -> None:
        """Let this id be written as that of the topic."""
        self._topics[topic_id] = f"id of {self.text(name)}"

    def text(self, value: str, *, naming: bool = True) -> str:
        """The text with its uuids as numbers in braces; those without a number stay `?` unless `naming`."""

        def name(match: re.Match[str]) -> str:
            uuid = match[0]
            if uuid not in self._uuids:
                if not naming:
                    return "{?}"
                self._uuids[uuid] = len(self._uuids) + 1
            return f"{{{self._uuids[uuid]}}}"

        return _UUID.sub(name, value).replace(self._prefix, "")

    def topic_id(self, value: UUID | bytes | None, *, naming: bool = True) -> str:
        """The name of a topic's id; a new one stays `?` unless `naming`."""
        topic_id = UUID(bytes=value) if isinstance(value, bytes) else value or _NO_UUID
        if topic_id == _NO_UUID:
            return "none"
        if topic_id not in self._topics:
            if not naming:
                return "{?}"
            self._topics[topic_id] = f"id {len(self._topics) + 1}"
        return self._topics[topic_id]

    def scalar(self, field: str, value: Any, *, naming: bool = True) -> str:
        """One value as it is written."""
        if field == "topic_id":
            return f"<{self.topic_id(value, naming=naming)}>"
        if value is None:
            return "null"
        if field == "error_code":
            return _error_name(value)
        return self._chance(field, value) or self._plain(value, naming)

    def _chance(self, field: str, value: Any) -> str | None:
        """The name of a value that every server chooses for itself."""
        if field == "cluster_id" and len(value) == CLUSTER_ID_LENGTH:
            return "<cluster>"
        if field == "port" and value == self._port:
            return "<port>"
        if field == "finalized_features_epoch" and value >= 0:
            return "<epoch>"
        return None

    def _plain(self, value: Any, naming: bool) -> str:
        if isinstance(value, str):
            return _short(self.text(value, naming=naming))
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, bytes):
            return self._blobs.get(value) or _short_bytes(value)
        if isinstance(value, set):
            return "{" + ",".join(map(str, sorted(value))) + "}"
        return str(value)

    def is_own(self, name: str) -> bool:
        """Whether the group or topic belongs to this scenario."""
        return name.startswith(self._prefix)


def _error_name(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return str(code)


def _short(text: str) -> str:
    written = json.dumps(text)
    if len(written) <= LONG_TEXT:
        return written
    return f'"{text[:20]}..." ({len(text)} characters, crc {zlib.crc32(text.encode()):08x})'


def _short_bytes(data: bytes) -> str:
    written = repr(data)
    return written if len(written) <= LONG_TEXT else f"{len(data)} bytes (crc {zlib.crc32(data):08x})"


# --- messages as fields --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reading:
    """How an answer is to be read: of which api and version, and which of its arrays are sorted."""

    api: ApiKey
    version: int
    unordered: frozenset[str] = frozenset()
    as_it_comes: bool = False
    own_only: tuple[str, str] = ("", "")
    texts: bool = False
    """Whether error messages are shown where we word them ourselves."""


def reading(api: ApiKey, version: int, *, of_all: bool = False, as_it_comes: bool = False) -> Reading:
    """The reading of a response; `of_all`: everything was asked for, `as_it_comes`: nothing sorted or left out."""
    if as_it_comes:
        return Reading(api, version, as_it_comes=True)
    unordered = UNORDERED.get(api, frozenset())
    own_only = ("", "")
    if of_all or api is ApiKey.LIST_GROUPS:
        unordered |= UNORDERED_IF_ALL.get(api, frozenset())
        own_only = OWN_ONLY.get(api, own_only)
    return Reading(api, version, unordered, own_only=own_only)


def response_fields(how: Reading, response: Any, names: Names) -> Fields:
    """All fields that the version of a response has; what is unordered is in a fixed order."""
    return _fields(how, find_request_and_response_classes(how.api)[1]._struct, response, names)


def _fields(how: Reading, schema: Any, value: Any, names: Names) -> Fields:
    return {
        field.name: _value(how, field, getattr(value, field.name), names)
        for field in present(schema, how.version)
    }


def _value(how: Reading, field: Any, value: Any, names: Names) -> Any:
    if value is None:
        return None
    if field.is_struct_array():
        items = [_fields(how, field.array_of, item, names) for item in value]
        array, key = how.own_only
        if field.name == array:
            items = [item for item in items if names.is_own(item[key])]
        if field.name in how.unordered:
            items = _sorted(items, names)
        if field.name == "configs" and not how.as_it_comes:
            items = [item for item in items if item["name"] not in LEFT_OUT]
        return items
    if field.is_struct():
        return _fields(how, field, value, names)
    if field.name == "error_message" and how.api in TEXTS and not how.texts and value not in ("", "NONE"):
        return "<text>"
    if field.name == "producer_id" and how.api is ApiKey.INIT_PRODUCER_ID and value >= 0:
        return "<id>"
    if field.name == "documentation" and value is not None:
        return "<text>"
    return value


def _sorted(items: list[Fields], names: Names) -> list[Fields]:
    """In the order of their text; chance must not decide which of two new uuids gets the lower number."""
    keyed = sorted(((inline(item, names, naming=False), item) for item in items), key=lambda pair: pair[0])
    for (one, _), (other, _) in itertools.pairwise(keyed):
        assert one != other or "{?}" not in one, (
            f"these members cannot be told apart: read their own answers first: {one}"
        )
    return [item for _, item in keyed]


# --- fields as text ------------------------------------------------------------------------------------------------


def inline(fields: Mapping[str, Any], names: Names, *, naming: bool = True) -> str:
    """The fields in one line."""
    return " ".join(f"{name}={_inline(name, value, names, naming)}" for name, value in fields.items())


def _inline(name: str, value: Any, names: Names, naming: bool) -> str:
    if isinstance(value, Mapping):
        return "{" + inline(value, names, naming=naming) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return "[" + ", ".join(_inline(name, item, names, naming) for item in value) + "]"
    return names.scalar(name, value, naming=naming)


def lines(head: str, fields: Mapping[str, Any], names: Names) -> Iterator[str]:
    """The fields after `head`, in one line where they fit, else one item of an array a line."""
    whole = f"{head} {inline(fields, names)}".rstrip()
    if len(whole) <= WIDTH:
        yield whole
        return
    yield from _block(head, fields, names, " " * 4)


def _block(head: str, fields: Mapping[str, Any], names: Names, indent: str) -> Iterator[str]:
    arrays = {
        name: value
        for name, value in fields.items()
        if isinstance(value, list) and value and isinstance(value[0], Mapping)
    }
    plain = {name: value for name, value in fields.items() if name not in arrays}
    yield f"{head} {inline(plain, names)}".rstrip()
    for name, items in arrays.items():
        yield f"{indent}{name}:"
        for item in items:
            whole = f"{indent}- {inline(item, names)}"
            if len(whole) <= WIDTH:
                yield whole
            else:
                yield from _block(f"{indent}-", item, names, indent + " " * 4)
