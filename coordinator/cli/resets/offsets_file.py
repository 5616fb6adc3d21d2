# SPDX-License-Identifier: Apache-2.0
"""The file of `groups set-offsets`: CSV as `kafka-consumer-groups.sh --export` writes it, topic, partition, offset."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from coordinator.cli.errors import EXIT_USAGE, CommandError

PARTITION_MAX: Final = 2**31 - 1
OFFSET_MAX: Final = 2**63 - 1
NUMBER_LENGTH_MAX: Final = 19

Offsets = dict[tuple[str, int], int]
"""By topic and partition."""


def read_offsets(path: Path) -> Offsets:
    """All lines of the file. Raises CommandError with the line that makes no sense, or names a partition again."""
    offsets: Offsets = {}
    try:
        with path.open(encoding="utf-8", newline="") as lines:
            for number, topic, partition, offset in _rows(path, csv.reader(lines, strict=True)):
                if (topic, partition) in offsets:
                    raise _mistake(path, number, f"{topic}-{partition} is there twice")
                offsets[topic, partition] = offset
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from None
    except (csv.Error, UnicodeDecodeError) as error:
        raise CommandError(f"{path}: {error}", EXIT_USAGE) from None
    if not offsets:
        raise CommandError(f"{path}: there are no offsets in it", EXIT_USAGE)
    return offsets


def _rows(path: Path, reader: Iterator[list[str]]) -> Iterator[tuple[int, str, int, int]]:
    for number, row in enumerate(reader, start=1):
        if not row:
            continue
        if len(row) != 3:
            raise _mistake(path, number, f"expected topic,partition,offset and not {len(row)} values")
        topic, partition, offset = row
        if not topic:
            raise _mistake(path, number, "the topic has no name")
        yield (
            number,
            topic,
            _whole(path, number, "partition", partition, PARTITION_MAX),
            _whole(path, number, "offset", offset, OFFSET_MAX),
        )


def _whole(path: Path, number: int, what: str, text: str, highest: int) -> int:
    digits = text.strip()
    if digits.isascii() and digits.isdigit() and len(digits) <= NUMBER_LENGTH_MAX and int(digits) <= highest:
        return int(digits)
    raise _mistake(path, number, f"{what} {text!r} is no whole number from 0 to {highest}")


def _mistake(path: Path, number: int, reason: str) -> CommandError:
    return CommandError(f"{path}, line {number}: {reason}", EXIT_USAGE)
