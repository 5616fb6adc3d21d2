# SPDX-License-Identifier: Apache-2.0
"""Text that clients chose, where somebody reads it on a terminal."""

import re
from typing import Final

_UNSEEN: Final = re.compile(
    "[\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000110bd\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001-\U000e007f]"
)
"""DEL, the C1 controls, what changes the direction of text, and other characters that show nothing or break lines."""


def escape_unprintable(text: str) -> str:
    """The text with an escape in place of each character that does not show as itself, such as ESC or a line break."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def escape_unseen(json: str) -> str:
    """Write as `\\uXXXX` what in JSON text could steer a terminal or hide what a line says.

    JSON itself escapes those below a space only.
    """
    return _UNSEEN.sub(_escaped, json)


def _escaped(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))
