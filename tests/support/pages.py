# SPDX-License-Identifier: Apache-2.0
"""What the documentation tells its readers to type, and which test does that."""

import ast
import re
from pathlib import Path
from textwrap import dedent
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
_FENCE: Final = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_INLINE: Final = re.compile(r"`((?:make|docker|python -m|kafka-[a-z-]+\.sh) [^`]+)`")


def blocks(page: str, language: str) -> list[str]:
    """The fenced blocks of one language in the text of a page; "" is for those that name none."""
    return [dedent(text) for _, found, text in _FENCE.findall(page) if found == language]


def commands(page: str) -> list[str]:
    """Every command of the `sh` blocks, in order: without its comment, and in one line where it goes over several."""
    lines = "\n".join(blocks(page, "sh")).replace("\\\n", " ").splitlines()
    without_comments = (re.sub(r"(^|\s)#.*", "", line) for line in lines)
    return [" ".join(line.split()) for line in without_comments if line.strip()]


def without_blocks(page: str) -> str:
    """The sentences, tables and headings of a page."""
    return _FENCE.sub("", page)


def named_commands(page: str) -> list[str]:
    """Every command with its arguments that stands in a sentence, of programs other than `groupkeeper`."""
    return _INLINE.findall(without_blocks(page))


def is_test(name: str) -> bool:
    """Whether `tests/.../test_file.py::test_name` is there."""
    file, _, function = name.partition("::")
    if not (ROOT / file).is_file():
        return False
    found = ast.parse((ROOT / file).read_text(encoding="utf-8")).body
    return any(
        isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and each.name == function for each in found
    )
