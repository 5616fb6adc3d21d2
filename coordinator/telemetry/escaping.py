# SPDX-License-Identifier: Apache-2.0
"""Escapes text that clients chose and operators read on a terminal."""

import re
from typing import Final

_UNSEEN: Final = re.compile(
    "[\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000110bd\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001-\U000e007f]"
)
"""DEL, the C1 controls, changes of the text direction, and other characters that show nothing or break lines."""


def escape_unprintable(text: str) -> str:
    """Return the text with an escape for each character that does not show as itself, such as ESC or a line break."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def escape_unseen(json: str) -> str:
    """Return JSON text with `\\uXXXX` for characters that could steer a terminal or hide part of a line.

    JSON itself escapes only the characters below a space.
    """
    return _UNSEEN.sub(_escaped, json)


def _escaped(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))
