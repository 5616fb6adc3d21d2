# SPDX-License-Identifier: Apache-2.0
"""RESULTS.md: a page of parts, each of which one command writes."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

TITLE: Final = "# "


def facts_table(facts: Mapping[str, str]) -> str:
    """The table of where and with what a part was measured (`bench.machine.describe`)."""
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in facts.items())])


def write_part(page: Path, text: str) -> None:
    """Put a part where the one with the same title is, or behind the others, which stay as they are.

    A part begins with its title, a line with one "#".
    """
    assert text.startswith(TITLE), "a part begins with its title"
    parts = _parts(page.read_text() if page.exists() else "")
    title = text.splitlines()[0]
    parts[title] = text.strip()
    page.write_text("\n\n".join(parts.values()) + "\n")


def _parts(text: str) -> dict[str, str]:
    """The parts by title, in their order."""
    parts: dict[str, str] = {}
    title = ""
    for line in text.splitlines():
        if line.startswith(TITLE):
            title = line
        parts[title] = f"{parts[title]}\n{line}" if title in parts else line
    return {title: part.strip() for title, part in parts.items() if title}
