# SPDX-License-Identifier: Apache-2.0
"""What can be wrong with the catalogue's file."""

import re
from typing import Final

from storage.errors import StorageError

_AT_BYTE: Final = re.compile(r" \(byte (\d+)\)")


class CorruptCatalogue(StorageError):
    """The catalogue's file is not one. It is left as it is, for somebody to look at."""


class MissingCatalogue(StorageError):
    """The catalogue's file is gone: there was one once."""


class OffsetsTopicChanged(StorageError):
    """`offsets.topic.num.partitions` is not what this data directory was made with."""


def position_in(error: Exception) -> tuple[int | None, str]:
    """Where in the bytes that were decoded an error is, None if it does not say, and its text without that."""
    reason = str(error)
    at_byte = _AT_BYTE.search(reason)
    return (int(at_byte[1]), _AT_BYTE.sub("", reason)) if at_byte else (None, reason)
