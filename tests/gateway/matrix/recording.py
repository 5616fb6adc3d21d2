# SPDX-License-Identifier: Apache-2.0
"""The recording: a real Kafka's answers in every case, in one text file.

It has a part for each kind of request. A part names its requests, then numbers the distinct answers to them, and then
has a line for each set of permissions: the number of the answer to each request, in the order of the requests.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

from tests.gateway.matrix.permission_sets import PermissionSet

PATH: Final = Path(__file__).with_name("recording.txt")

_HEAD: Final = "Made by `python -m tests.gateway.matrix.record` with a real Kafka: do not edit."
_SETS: Final = "The sets of permissions:"
_TITLE: Final = "== "
_ASKED: Final = "asked: "
_CASE: Final = "- "


@dataclass(slots=True)
class Part:
    """The answers to one kind of request."""

    requests: tuple[str, ...]
    """The names of its requests."""
    cases: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """By set of permissions, the answers to its requests."""


Recording: TypeAlias = dict[str, Part]
"""The parts by kind."""


def store(recording: Recording, sets: Iterable[PermissionSet]) -> None:
    """Write the file."""
    head = [_HEAD, "", _SETS, *(_said(each) for each in sets)]
    parts = ["\n".join(_lines(kind, part)) for kind, part in recording.items()]
    PATH.write_text("\n\n".join(["\n".join(head), *parts]) + "\n")


def load() -> Recording:
    """Read the file."""
    _, *parts = PATH.read_text().rstrip("\n").split("\n" + _TITLE)
    return dict(map(_read, parts))


def _said(each: PermissionSet) -> str:
    return f"{_CASE}{each.user}: {', '.join(map(str, each.acls))}".rstrip()


def _lines(kind: str, part: Part) -> Iterator[str]:
    numbers: dict[str, int] = {}
    for answers in part.cases.values():
        for answer in answers:
            numbers.setdefault(answer, len(numbers) + 1)
    yield f"{_TITLE}{kind}"
    yield _ASKED + ", ".join(part.requests)
    yield from (f"{number} {answer}" for answer, number in numbers.items())
    for user, answers in part.cases.items():
        yield f"{_CASE}{user}: {' '.join(str(numbers[each]) for each in answers)}"


def _read(text: str) -> tuple[str, Part]:
    kind, asked, *lines = text.rstrip("\n").split("\n")
    part = Part(tuple(asked.removeprefix(_ASKED).split(", ")))
    said: dict[str, str] = {}
    for line in lines:
        if line.startswith(_CASE):
            user, numbers = line.removeprefix(_CASE).split(": ")
            part.cases[user] = tuple(said[number] for number in numbers.split())
        else:
            number, _, answer = line.partition(" ")
            said[number] = answer
    return kind, part
