# SPDX-License-Identifier: Apache-2.0
"""Offsets in files: CSV as `kafka-consumer-groups.sh --export` writes and reads it, and JSON.

A line of CSV has a topic, a partition and an offset, or a group before them; Kafka's tool leaves the group out if one
group was requested. JSON has what CSV has no place for: leader epochs and metadata.
"""

import csv
import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from coordinator.cli.cluster.model import CommittedOffset
from coordinator.cli.errors import EXIT_USAGE, CommandError
from coordinator.cluster_requests.model import TopicPartition

PARTITION_MAX: Final = 2**31 - 1
OFFSET_MAX: Final = 2**63 - 1
NUMBER_LENGTH_MAX: Final = 19

ByGroup = dict[str | None, list[CommittedOffset]]
"""Offsets by group; None is the group that the file does not name."""


class GroupOffsets(msgspec.Struct, frozen=True):
    """The offsets of one group in a JSON file."""

    group: str
    offsets: list[CommittedOffset]


def read_offsets(path: Path) -> ByGroup:
    """Return all offsets in a file. Raises CommandError with the line that makes no sense or repeats a partition."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        found = _from_json(path, text) if text.lstrip().startswith(("[", "{")) else _from_csv(path, text)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}", EXIT_USAGE) from None
    except (csv.Error, UnicodeDecodeError, msgspec.DecodeError) as error:
        raise CommandError(f"{path}: {error}", EXIT_USAGE) from None
    if not any(found.values()):
        raise CommandError(f"{path}: it contains no offsets", EXIT_USAGE)
    return found


def get_group_offsets(path: Path, offsets: ByGroup, group: str) -> list[CommittedOffset]:
    """Return the offsets of one group, or those of a file without groups. Raises CommandError if there are none."""
    rows = offsets.get(None, offsets.get(group))
    if rows is None:
        raise CommandError(f"{path}: it contains no offsets of group {group}")
    return rows


def to_csv(groups: Iterable[GroupOffsets], *, named: bool) -> str:
    """Return offsets as Kafka's tool exports them, with the group in each line if `named`."""
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    for each in groups:
        first = (each.group,) if named else ()
        writer.writerows((*first, row.topic, row.partition, row.offset) for row in each.offsets)
    return text.getvalue()


def _from_json(path: Path, text: str) -> ByGroup:
    groups = msgspec.json.decode(text, type=list[GroupOffsets])
    found: ByGroup = {}
    for each in groups:
        places = {row.place for row in each.offsets}
        if each.group in found or len(places) != len(each.offsets):
            raise CommandError(
                f"{path}: group {each.group} or one of its partitions appears twice", EXIT_USAGE
            )
        wrong = [
            r for r in each.offsets if not (0 <= r.partition <= PARTITION_MAX and 0 <= r.offset <= OFFSET_MAX)
        ]
        if wrong:
            raise CommandError(
                f"{path}: {wrong[0].place}, offset {wrong[0].offset}: out of range", EXIT_USAGE
            )
        found[each.group] = each.offsets
    return found


def _from_csv(path: Path, text: str) -> ByGroup:
    found: ByGroup = {}
    seen: set[tuple[str | None, TopicPartition]] = set()
    for number, group, row in _rows(path, csv.reader(io.StringIO(text, newline=""), strict=True)):
        if (group, row.place) in seen:
            raise _mistake(path, number, f"{row.place} appears twice")
        seen.add((group, row.place))
        found.setdefault(group, []).append(row)
    return found


def _rows(path: Path, reader: Iterator[list[str]]) -> Iterator[tuple[int, str | None, CommittedOffset]]:
    width = 0
    for number, row in enumerate(reader, start=1):
        if not row:
            continue
        width = width or (4 if len(row) == 4 else 3)
        if len(row) != width:
            names = "group,topic,partition,offset" if width == 4 else "topic,partition,offset"
            raise _mistake(path, number, f"expected {names}, found {len(row)} values")
        topic, partition, offset = row[-3:]
        if not topic:
            raise _mistake(path, number, "the topic has no name")
        index = _whole(path, number, "partition", partition, PARTITION_MAX)
        at = _whole(path, number, "offset", offset, OFFSET_MAX)
        yield number, row[0] if width == 4 else None, CommittedOffset(topic, index, at)


def _whole(path: Path, number: int, what: str, text: str, highest: int) -> int:
    digits = text.strip()
    if digits.isascii() and digits.isdigit() and len(digits) <= NUMBER_LENGTH_MAX and int(digits) <= highest:
        return int(digits)
    raise _mistake(path, number, f"{what} {text!r} is not a whole number from 0 to {highest}")


def _mistake(path: Path, number: int, reason: str) -> CommandError:
    return CommandError(f"{path}, line {number}: {reason}", EXIT_USAGE)
