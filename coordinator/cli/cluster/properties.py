# SPDX-License-Identifier: Apache-2.0
"""Java's property files (java.util.Properties.load), as Kafka's tools read them."""

import re
from pathlib import Path
from typing import Final

from coordinator.cli.errors import EXIT_USAGE, CommandError

_COMMENT: Final = re.compile(r"\s*[#!]")
_ENTRY: Final = re.compile(r"\s*((?:[^\\\s=:]|\\.)+)\s*[=:\s]?\s*(.*)", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_NAMED: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def read_properties(path: Path) -> dict[str, str]:
    """Read the properties in a file. Raises CommandError if it cannot be read."""
    try:
        return parse_properties(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}", EXIT_USAGE) from None
    except UnicodeDecodeError:
        raise CommandError(f"{path}: it is not UTF-8", EXIT_USAGE) from None


def parse_properties(text: str) -> dict[str, str]:
    """Return the properties in a text; if a name comes twice, the last value counts."""
    properties = {}
    lines = iter(re.split(r"\r\n|\r|\n", text))
    for line in lines:
        if _COMMENT.match(line) or not line.strip():
            continue
        whole = line
        while _goes_on(whole):
            whole = whole[:-1] + next(lines, "").lstrip()
        entry = _ENTRY.match(whole)
        if entry is not None:
            properties[_unescaped(entry[1])] = _unescaped(entry[2])
    return properties


def _goes_on(line: str) -> bool:
    """Return whether the line ends in a backslash that is not itself escaped."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _unescaped(text: str) -> str:
    def plain(match: re.Match[str]) -> str:
        escaped = match[1]
        return chr(int(escaped[1:], 16)) if len(escaped) == 5 else _NAMED.get(escaped, escaped)

    return _ESCAPE.sub(plain, text)
