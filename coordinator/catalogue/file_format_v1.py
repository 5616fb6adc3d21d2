# SPDX-License-Identifier: Apache-2.0
"""`catalogue.json` up to version 1: all topics in one document.

    {
      "version": 1,
      "offsets_topic": {"id": "qOe5a2e0TcCzjwzU7eQp2w", "partitions": 50},
      "topics": [
        {"name": "orders", "id": "kM0gJ8J5T5m1s5i3jJc2XA", "partitions": 12, "configs": {"retention.ms": "5"}}
      ]
    }

Ids are base64 as Kafka's tools show them; topics are in name order; configs are left out when there are none. It
is only read any more: `file_format.py` says what is written.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final

import msgspec

from coordinator.catalogue import configs
from coordinator.catalogue.catalogue import Catalogue
from coordinator.catalogue.errors import CorruptCatalogue, position_in
from coordinator.catalogue.ids import from_text
from coordinator.catalogue.names import OFFSETS_TOPIC, collision_key, why_invalid
from coordinator.catalogue.topic import Topic

VERSION: Final = 1

Partitions = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]


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
        position, reason = position_in(error)
        cut_at = len(data) if "truncated" in reason else None
        raise CorruptCatalogue(path, reason, position=cut_at if position is None else position) from None


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
