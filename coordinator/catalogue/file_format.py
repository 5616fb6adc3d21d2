# SPDX-License-Identifier: Apache-2.0
"""The format of `catalogue.json`, version 3: the topics when the file was made, then a line for each change.

    {"crc":"0b3f91aa","version":3,"offsets_topic":{"id":"qOe5a2e0TcCzjwzU7eQp2w","partitions":50},"lines":1}
    {"crc":"77d3c0a1","created":[{"name":"orders","id":"kM0gJ8J5T5m1s5i3jJc2XA","partitions":12}]}
    {"crc":"5e10bd4c","grown":[{"id":"kM0gJ8J5T5m1s5i3jJc2XA","before":12,"partitions":24}]}
    {"crc":"9d1f03e2","configured":[{"id":"kM0gJ8J5T5m1s5i3jJc2XA","before":{},"configs":{"retention.ms":"5"}}]}
    {"crc":"c04417fe","deleted":["kM0gJ8J5T5m1s5i3jJc2XA"]}
    {"crc":"5cf2d1b0","dropped":[{"upto":1,"partitions":[0,1,2]}]}

Every line is JSON. `crc` is the CRC-32C, in hexadecimal, of what follows it: from the quotation mark after its comma to
the closing brace. `lines` counts the lines that the file was made with, after the first. They were on disk before the
file got its name; a line that came later is on disk before any response shows its change, and a change of many
topics takes several, all but the first with `"continues":true`. Within a line topics are deleted, then grown, then
configured, then created. Ids are base64 as Kafka's tools show them; configs of new topics are left out when there are
none.

Deleted topics are counted in the order of the file. `dropped` lists the partitions of `__consumer_offsets` that hold no
offsets in the topics deleted up to a number; every other partition is to drop its offsets in them (`deletions`). A
rewritten file begins its count at `deletions` of its first line, if that is not 0, and its `gone` names the topics in
which offsets may still exist; they count as deleted at that line.

**A torn tail** is left by a write that a crash interrupted: a last line, beyond those that the file was made with,
which has no end or holds zeros; behind zeros lines may be whole that continue the same change, since pages reach the
disk in any order. No response has shown it, and it is cut. Everything else that cannot be read is damage.

Version 1 was one JSON document; no release wrote it, and it is refused. Version 2 had no `dropped`, `gone` and
`deletions`; it is read, and replaced by version 3 at the next start. Changing this format: add a version with structs
of its own where they differ, keep reading every one that a release wrote, write only the newest. A reader refuses
unknown fields and unknown versions, so that an older build cannot lose anything.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final, TypeVar

import msgspec
from crc32c import crc32c

from coordinator.catalogue import topic_configs
from coordinator.catalogue.catalogue import Catalogue
from coordinator.catalogue.changes import (
    PIECE_TOPICS_MAX,
    Changes,
    ConfigsChanged,
    PartitionsAdded,
    StaleChange,
    topic_pieces,
)
from coordinator.catalogue.deletions import NOTHING, DeletedTopicsWithOffsets, StoredDeletions
from coordinator.catalogue.errors import CorruptCatalogue, split_decode_error
from coordinator.catalogue.ids import from_text
from coordinator.catalogue.names import OFFSETS_TOPIC, invalid_reason
from coordinator.catalogue.topic import Topic
from protocol.newtypes import Partition
from storage.disk.properties import encode_uuid

VERSION: Final = 3
WITHOUT_DROPS: Final = 2
_PREFIX: Final = b'{"crc":"'
_CRC_END: Final = len(_PREFIX) + 8
_BODY_AT: Final = _CRC_END + len(b'",')
_VERSION_1: Final = re.compile(rb'\s*\{\s*"version"\s*:\s*1\b')

Partitions = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
Line = TypeVar("Line", bound=msgspec.Struct)


class _OffsetsTopic(msgspec.Struct, forbid_unknown_fields=True):
    id: str
    partitions: Partitions


class _Header(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    version: int
    offsets_topic: _OffsetsTopic
    lines: Annotated[int, msgspec.Meta(ge=0)]
    deletions: Annotated[int, msgspec.Meta(ge=0)] = 0


class _Topic(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    name: str
    id: str
    partitions: Partitions
    configs: dict[str, str] = msgspec.field(default_factory=dict)


class _Grown(msgspec.Struct, forbid_unknown_fields=True):
    id: str
    before: Partitions
    partitions: Partitions


class _Configured(msgspec.Struct, forbid_unknown_fields=True):
    id: str
    before: dict[str, str]
    configs: dict[str, str]


class _Dropped(msgspec.Struct, forbid_unknown_fields=True):
    upto: Annotated[int, msgspec.Meta(ge=0)]
    partitions: list[Annotated[int, msgspec.Meta(ge=0)]]


class _Changes(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    deleted: list[str] = []
    grown: list[_Grown] = []
    configured: list[_Configured] = []
    created: list[_Topic] = []
    gone: list[str] = []
    dropped: list[_Dropped] = []
    continues: bool = False


class _Version(msgspec.Struct):
    version: int


class DecodedCatalogue(msgspec.Struct):
    """The contents of a catalogue's file.

    `made_bytes` is the size that the file was made with, 0 for an older version; `end` is the position of the next
    line, and `is_torn` is true if a torn tail begins at `end`.
    """

    catalogue: Catalogue
    deletions: DeletedTopicsWithOffsets
    made_bytes: int
    end: int
    is_torn: bool


def encode_file_in_parts(
    offsets_topic: Topic, topics: Collection[Topic], deletions: StoredDeletions = NOTHING
) -> Iterator[bytes]:
    """Yield a whole new file, in parts of bounded size."""
    pieces = list(topic_pieces(topics))
    gone = [
        names[start : start + PIECE_TOPICS_MAX]
        for names in deletions.gone
        for start in range(0, len(names), PIECE_TOPICS_MAX)
    ]
    internal = _OffsetsTopic(encode_uuid(offsets_topic.id), offsets_topic.partitions)
    lines = len(pieces) + len(gone) + bool(deletions.dropped)
    yield _line(_Header(VERSION, internal, lines, deletions.before))
    for piece in pieces:
        yield encode_changes(Changes(created=piece))
    for names in gone:
        yield _line(_Changes(gone=list(names)))
    if deletions.dropped:
        yield encode_finished_drops(deletions.dropped)


def encode_finished_drops(dropped: Mapping[int, Sequence[Partition]]) -> bytes:
    """Encode a line that lists, by a number, the partitions without offsets in the topics deleted up to that number."""
    return _line(_Changes(dropped=[_Dropped(upto, list(parts)) for upto, parts in dropped.items()]))


def encode_changes(changes: Changes, *, continues_line_before: bool = False) -> bytes:
    """Encode one line; with `continues_line_before` it is written together with the line before it."""
    return _line(
        _Changes(
            deleted=[encode_uuid(topic_id) for topic_id in changes.deleted],
            grown=[_Grown(encode_uuid(each.id), each.before, each.partitions) for each in changes.grown],
            configured=[
                _Configured(encode_uuid(each.id), dict(each.before), dict(each.configs))
                for each in changes.configured
            ],
            created=[
                _Topic(topic.name, encode_uuid(topic.id), topic.partitions, dict(topic.configs))
                for topic in changes.created
            ],
            continues=continues_line_before,
        )
    )


def _line(content: msgspec.Struct) -> bytes:
    body = msgspec.json.encode(content)[1:]  # which is never empty: whatever is written has a field
    return b'%b%08x",%b\n' % (_PREFIX, crc32c(body), body)


def decode(data: bytes, path: Path) -> DecodedCatalogue:
    """Return the contents of a file; `path` is its name in errors. Raises CorruptCatalogue."""
    found = _decode_lines(data, path)
    if _header(data, path)[0].version == WITHOUT_DROPS:
        found.made_bytes, found.deletions = (
            0,
            DeletedTopicsWithOffsets(found.catalogue.offsets_topic.partitions),
        )
    return found


def _decode_lines(data: bytes, path: Path) -> DecodedCatalogue:
    header, end = _header(data, path)
    catalogue = Catalogue(_offsets_topic(header, path))
    deletions = DeletedTopicsWithOffsets(header.offsets_topic.partitions, header.deletions)
    made_bytes = end
    number = 0
    for position, text in _lines(data, end):
        number += 1
        if number > header.lines and _is_torn(data, text, position, path):
            return DecodedCatalogue(catalogue, deletions, made_bytes, end, is_torn=True)
        stored = _read(text, position, path, _Changes)
        gone = _apply(stored, position, path, catalogue)
        _note(stored, gone, position, path, deletions)
        end = position + len(text) + 1
        if number == header.lines:
            made_bytes = end
    if number < header.lines:
        raise CorruptCatalogue(
            path, f"the file was cut: {number} of {header.lines} lines are there", position=len(data)
        )
    return DecodedCatalogue(catalogue, deletions, made_bytes, end, is_torn=False)


def decode_partition_count(data: bytes, path: Path) -> int:
    """Return the number of partitions of `__consumer_offsets` in a file. Raises CorruptCatalogue."""
    return _header(data, path)[0].offsets_topic.partitions


def _header(data: bytes, path: Path) -> tuple[_Header, int]:
    text = data[: data.find(b"\n") + 1].rstrip(b"\n") or data
    version = 1 if _VERSION_1.match(data) else _read(text, 0, path, _Version).version
    if version not in (WITHOUT_DROPS, VERSION):
        raise CorruptCatalogue(
            path,
            f"its version is {version}, but this build reads versions {WITHOUT_DROPS} and {VERSION}",
            position=0,
        )
    return _read(text, 0, path, _Header), len(text) + 1


def _lines(data: bytes, position: int) -> Iterator[tuple[int, bytes]]:
    """Yield the position of each line from `position` on, and the line without its end; the last may have no end."""
    while position < len(data):
        end = data.find(b"\n", position)
        end = len(data) if end < 0 else end
        yield position, data[position:end]
        position = end + 1


def _is_torn(data: bytes, text: bytes, position: int, path: Path) -> bool:
    end = position + len(text)
    if end == len(data):
        return True
    # Later lines are read only then: no whole line has zeros.
    return b"\0" in text and all(
        b"\0" in later or start + len(later) == len(data) or _continues(later, start, path)
        for start, later in _lines(data, end + 1)
    )


def _continues(text: bytes, position: int, path: Path) -> bool:
    try:
        return _read(text, position, path, _Changes).continues
    except CorruptCatalogue:
        return False


def _read(text: bytes, position: int, path: Path, kind: type[Line]) -> Line:
    if not text.startswith(_PREFIX):
        raise CorruptCatalogue(path, "this is no line of a catalogue", position=position)
    body = text[_BODY_AT:]
    if text[_CRC_END:_BODY_AT] != b'",' or text[len(_PREFIX) : _CRC_END] != b"%08x" % crc32c(body):
        raise CorruptCatalogue(path, "this line's checksum is wrong", position=position)
    try:
        return msgspec.json.decode(b"{" + body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        where, reason = split_decode_error(error)
        if where is not None:
            position += (
                _BODY_AT - 1 + where
            )  # the decoder has got a brace in place of what is before the body
        raise CorruptCatalogue(path, reason, position=position) from None


def _offsets_topic(header: _Header, path: Path) -> Topic:
    topic_id = _id(header.offsets_topic.id, path, 0)
    return Topic(name=OFFSETS_TOPIC, id=topic_id, partitions=header.offsets_topic.partitions)


def _apply(stored: _Changes, position: int, path: Path, catalogue: Catalogue) -> list[str]:
    changes = Changes(
        [_id(text, path, position) for text in stored.deleted],
        [
            PartitionsAdded(_id(each.id, path, position), each.before, each.partitions)
            for each in stored.grown
        ],
        [_configured(each, path, position) for each in stored.configured],
        [_topic(each, path, position) for each in stored.created],
    )
    try:
        return catalogue.apply_and_list_deleted(changes)
    except StaleChange as misfit:
        raise CorruptCatalogue(path, str(misfit), position=position) from None


def _note(
    stored: _Changes, gone: list[str], position: int, path: Path, deletions: DeletedTopicsWithOffsets
) -> None:
    """Note the deletions in a line. Raises CorruptCatalogue."""
    if names := [*gone, *stored.gone]:
        deletions.note_deleted(names)
    for dropped in stored.dropped:
        if dropped.upto > deletions.number:
            raise CorruptCatalogue(
                path, f"there were no {dropped.upto} topics to be deleted", position=position
            )
        for partition in dropped.partitions:
            if partition >= deletions.offsets_partition_count:
                raise CorruptCatalogue(path, f"there is no partition {partition}", position=position)
            deletions.record_drops_through(Partition(partition), dropped.upto)
    deletions.forget_dropped()


def _configured(stored: _Configured, path: Path, position: int) -> ConfigsChanged:
    if reason := topic_configs.refusal_reason(stored.configs):
        raise CorruptCatalogue(path, reason, position=position)
    return ConfigsChanged(_id(stored.id, path, position), stored.before, stored.configs)


def _topic(stored: _Topic, path: Path, position: int) -> Topic:
    if reason := invalid_reason(stored.name) or (
        stored.configs and topic_configs.refusal_reason(stored.configs)
    ):
        raise CorruptCatalogue(path, str(reason), position=position)
    return Topic(
        name=stored.name,
        id=_id(stored.id, path, position),
        partitions=stored.partitions,
        configs=stored.configs,
    )


def _id(text: str, path: Path, position: int) -> bytes:
    try:
        return from_text(text)
    except ValueError as error:
        raise CorruptCatalogue(path, str(error), position=position) from None
