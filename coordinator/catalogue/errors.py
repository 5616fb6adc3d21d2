# SPDX-License-Identifier: Apache-2.0
"""The errors of the catalogue's file."""

import re
from typing import Final

from storage.errors import StorageError

_AT_BYTE: Final = re.compile(r" \(byte (\d+)\)")


class CorruptCatalogue(StorageError):
    """The catalogue's file is not valid; it is left unchanged for an operator to inspect."""


class MissingCatalogue(StorageError):
    """The catalogue's file is missing although there was one before."""


class OffsetsTopicChanged(StorageError):
    """`offsets.topic.num.partitions` differs from the number that this data directory was made with."""


def split_decode_error(error: Exception) -> tuple[int | None, str]:
    """Return the position in the decoded bytes that an error names, or None, and its text without the position."""
    reason = str(error)
    at_byte = _AT_BYTE.search(reason)
    return (int(at_byte[1]), _AT_BYTE.sub("", reason)) if at_byte else (None, reason)
