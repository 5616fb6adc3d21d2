# SPDX-License-Identifier: Apache-2.0
"""`catalogue.json`: the catalogue as a file that a person can read, too.

    {
      "version": 1,
      "offsets_topic": {"id": "qOe5a2e0TcCzjwzU7eQp2w", "partitions": 50},
      "topics": [
        {"name": "orders", "id": "kM0gJ8J5T5m1s5i3jJc2XA", "partitions": 12, "configs": {"retention.ms": "5"}}
      ]
    }

Ids are base64 as Kafka's tools show them; topics are in name order; configs are left out when there are none.

Changing this format: add a version with structs of its own, keep reading every earlier one, write only the
newest. A reader refuses unknown fields and unknown versions, so that an older build cannot lose anything.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final

import msgspec

from coordinator.catalogue import configs
from coordinator.catalogue.catalogue import Catalogue
from coordinator.catalogue.ids import from_text
from coordinator.catalogue.names import OFFSETS_TOPIC, collision_key, why_invalid
from coordinator.catalogue.topic import Topic
from storage.errors import StorageError
from storage.properties import encode_uuid

VERSION: Final = 1

Partitions = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
_AT_BYTE: Final = re.compile(r" \(byte (\d+)\)")


class CorruptCatalogue(StorageError):
    """The catalogue's file is not one. It is left as it is, for somebody to look at."""


class _OffsetsTopic(msgspec.Struct, forbid_unknown_fields=True):
    id: str
    partitions: Partitions


class _Topic(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    name: str
    id: str
    partitions: Partitions
    configs: dict[str, str] = msgspec.field(default_factory=dict)


class _File(msgspec.Struct, forbid_unknown_fields=True):
    version: int
    offsets_topic: _OffsetsTopic
    topics: list[_Topic]


class _Head(msgspec.Struct):
    version: int


def encode(catalogue: Catalogue) -> bytes:
    """The file's whole content."""
    internal = catalogue.offsets_topic
    content = _File(
        version=VERSION,
        offsets_topic=_OffsetsTopic(encode_uuid(internal.id), internal.partitions),
        topics=[
            _Topic(topic.name, encode_uuid(topic.id), topic.partitions, dict(topic.configs))
            for topic in catalogue
            if topic is not internal
        ],
    )
    return msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n"


def decode(data: bytes, path: Path) -> Catalogue:
    """The catalogue that a file holds; `path` is its name in errors. Raises CorruptCatalogue."""
    content = _parse(data, path)
    topics = [_offsets_topic(content.offsets_topic, path)]
    for index, stored in enumerate(content.topics):
        topics.append(_topic(stored, path, f"$.topics[{index}]"))
    for reason in _doubles(topics):
        raise CorruptCatalogue(path, reason)
    return Catalogue(topics[0], topics[1:])


def _parse(data: bytes, path: Path) -> _File:
    try:
        text = data.decode()
        version = msgspec.json.decode(text, type=_Head).version
        if version != VERSION:
            raise CorruptCatalogue(path, f"its version is {version}, but this build reads version {VERSION}")
        return msgspec.json.decode(text, type=_File)
    except UnicodeDecodeError as error:
        raise CorruptCatalogue(path, "this is not UTF-8", position=error.start) from None
    except msgspec.DecodeError as error:
        reason = str(error)
        at_byte = _AT_BYTE.search(reason)
        if at_byte:
            raise CorruptCatalogue(path, _AT_BYTE.sub("", reason), position=int(at_byte[1])) from None
        cut_at = len(data) if "truncated" in reason else None
        raise CorruptCatalogue(path, reason, position=cut_at) from None


def _offsets_topic(stored: _OffsetsTopic, path: Path) -> Topic:
    topic_id = _id(stored.id, path, "$.offsets_topic")
    return Topic(name=OFFSETS_TOPIC, id=topic_id, partitions=stored.partitions)


def _topic(stored: _Topic, path: Path, where: str) -> Topic:
    if reason := why_invalid(stored.name) or configs.why_refused(stored.configs):
        raise CorruptCatalogue(path, f"{reason} - at `{where}`")
    return Topic(
        name=stored.name,
        id=_id(stored.id, path, where),
        partitions=stored.partitions,
        configs=stored.configs,
    )


def _id(text: str, path: Path, where: str) -> bytes:
    try:
        return from_text(text)
    except ValueError as error:
        raise CorruptCatalogue(path, f"{error} - at `{where}.id`") from None


def _doubles(topics: list[Topic]) -> Iterator[str]:
    """What is there twice: a name, one that collides with it, or an id."""
    names: dict[str, str] = {}
    ids: dict[bytes, str] = {}
    for topic in topics:
        key = collision_key(topic.name)
        if key in names:
            yield f"topics '{names[key]}' and '{topic.name}' cannot exist side by side"
        if topic.id in ids:
            yield f"topics '{ids[topic.id]}' and '{topic.name}' have the same id"
        names[key] = ids[topic.id] = topic.name
