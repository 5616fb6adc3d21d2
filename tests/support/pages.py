# SPDX-License-Identifier: Apache-2.0
"""The pages of the documentation, and the commands that they tell their readers to type."""

import ast
import re
from pathlib import Path
from textwrap import dedent
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
PAGES: Final = {
    str(page.relative_to(ROOT)): page.read_text(encoding="utf-8")
    for folder in (ROOT, ROOT / "bench", ROOT / "docs")
    for page in sorted(folder.glob("*.md"))
}
"""The text of each page, by its path; the READMEs of tests/ are notes for those who change the tests."""

HISTORY: Final = "CHANGELOG.md"
"""The page that names the commands of earlier versions, and tells nobody to type one."""

PROGRAMS: Final = frozenset({
    "apt-get", "chmod", "chown", "cp", "curl", "df", "docker", "du", "find", "git", "groupkeeper", "helm", "install",
    "iostat", "journalctl", "kafka-*.sh", "ln", "make", "mkdir", "openssl", "pip", "pipx", "python", "python3", "rm",
    "scp", "spark-submit", "systemctl", "systemd-analyze", "tar", "unshare", "useradd", "uv", "vmstat",
})  # fmt: skip
"""The programs whose commands are looked for in sentences and tables; those of the blocks are among them."""

_FENCE: Final = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_INLINE: Final = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_PROGRAM: Final = re.compile(r"(?:\w+=\S* )*(?:\.venv/bin/|/opt/\S+/\.venv/bin/)?([^\s/]+)(?: (.+))?")
_NAMES_OF_COMMANDS: Final = re.compile(r"[a-z][a-z-]*( [a-z][a-z-]*)*")


def blocks(page: str, language: str) -> list[str]:
    """The fenced blocks of one language in the text of a page; "" is for those that name none."""
    return [dedent(text) for _, found, text in _FENCE.findall(page) if found == language]


def languages(page: str) -> set[str]:
    """The languages of the fenced blocks of a page."""
    return {found for _, found, _ in _FENCE.findall(page)}


def commands(page: str) -> list[str]:
    """Every command of the `sh` blocks, in order: without its comment, and in one line where it goes over several."""
    lines = "\n".join(blocks(page, "sh")).replace("\\\n", " ").splitlines()
    without_comments = (re.sub(r"(^|\s)#.*", "", line) for line in lines)
    return [" ".join(line.split()) for line in without_comments if line.strip()]


def without_blocks(page: str) -> str:
    """The sentences, tables and headings of a page."""
    return _FENCE.sub("", page)


def inline_code(page: str) -> list[str]:
    """The text between each two backquotes of the sentences, tables and headings of a page."""
    return [" ".join(each.split()) for each in _INLINE.findall(without_blocks(page))]


def program(command: str) -> str:
    """The program that a command runs, under its name in PROGRAMS if it is there."""
    found = _PROGRAM.match(command)
    assert found is not None, command
    return re.sub(r"^kafka-[a-z-]+\.sh$", "kafka-*.sh", found[1])


def is_command(text: str) -> bool:
    """Return whether a text can be typed as it is: a program of PROGRAMS with its arguments.

    `groupkeeper groups reset` only names a command, and a tool of Kafka without an address does nothing.
    """
    found = _PROGRAM.fullmatch(text)
    if found is None or not found[2] or program(text) not in PROGRAMS:
        return False
    if program(text) == "groupkeeper":
        return _NAMES_OF_COMMANDS.fullmatch(found[2]) is None
    return program(text) != "kafka-*.sh" or "--bootstrap-server" in found[2]


def documented_commands(page: str) -> set[str]:
    """The commands of the `sh` blocks of a page, and those that stand in its sentences and tables."""
    return {*commands(page), *filter(is_command, inline_code(page))}


def is_test(name: str) -> bool:
    """Whether `tests/.../test_file.py::test_name` is there."""
    file, _, function = name.partition("::")
    if not (ROOT / file).is_file():
        return False
    found = ast.parse((ROOT / file).read_text(encoding="utf-8")).body
    return any(
        isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and each.name == function for each in found
    )
