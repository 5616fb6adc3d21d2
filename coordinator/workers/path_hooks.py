# SPDX-License-Identifier: Apache-2.0
"""The paths in messages, as text: MessagePack has no type for them."""

from pathlib import Path
from typing import Any


def encode_path(value: object) -> str:
    """Return a path as text (an `enc_hook` of msgspec)."""
    assert isinstance(value, Path), f"{value!r}: a message holds paths, and else only what msgspec knows"
    return str(value)


def decode_path(kind: type, value: Any) -> Path:
    """Return the path of a text (a `dec_hook` of msgspec).

    Raises TypeError if it is no text, which msgspec turns into a ValidationError.
    """
    assert issubclass(kind, Path), f"{kind}: a message holds paths, and else only what msgspec knows"
    return kind(value)
