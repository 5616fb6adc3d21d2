# SPDX-License-Identifier: Apache-2.0
"""No compiled function reads what the compiler takes for less than it may be by then."""

from pathlib import Path

import pytest

from tests.compiled.modules import ROOT, compiled_modules
from tests.compiled.narrowing import Constants, stale_reads
from tests.compiled.typed import typed

PACKAGES = ("audit", "coordinator", "protocol", "storage")

PLANTED = """
import enum
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal


class State(enum.Enum):
    A = 1
    B = 2


@dataclass
class Other:
    x: int | None = None
    kind: Literal["a", "b"] = "a"


@dataclass
class Plain:
    y: int


_shared: Other | None = None


def set_shared() -> None:
    global _shared
    _shared = None


def reads_a_global() -> int | None:
    if _shared is None:
        return None
    set_shared()
    return _shared.x  # stale


class Machine:
    def __init__(self, call: Callable[[], None], once: int | None) -> None:
        self.x: int | None = None
        self.flag = False
        self.state = State.A
        self.other: Other | Plain = Other()
        self.items: list[Other | None] = []
        self.call = call
        self.once = once
        self.any: Any = None
        self.numbers: list[int] | None = None

    @property
    def failure(self) -> str | None:
        return None if self.x is None else "x"

    def step(self) -> None:
        self.x, self.flag, self.state, self.other = 1, True, State.B, Plain(1)
        self.items[0] = None
        self.any = 1
        self.numbers = None
        Other().kind = "b"

    async def wait(self) -> None:
        self.step()

    # --- every shape of narrowing, with a call before the read ---

    def is_not_none(self) -> None:
        if self.x is not None:
            return
        self.step()
        print(self.x)  # stale

    def is_none(self) -> int:
        if self.x is None:
            return 0
        self.step()
        return self.x + 1  # stale

    def assigned(self) -> None:
        self.x = None
        self.step()
        print(self.x)  # stale

    def assigned_object(self) -> int | None:
        self.other = Other()
        self.step()
        return self.other.x  # stale

    def asserted(self) -> int:
        assert self.x is not None
        self.step()
        return self.x  # stale

    def truth(self) -> None:
        if self.flag:
            return
        self.step()
        if self.flag:  # stale
            print("never, says mypy")

    def truth_of_optional(self) -> int:
        if not self.x:
            return 0
        self.step()
        return self.x  # stale

    def is_instance(self) -> int:
        if isinstance(self.other, Plain):
            return 0
        self.step()
        return self.other.x or 0  # stale

    def is_instance_of_any(self) -> int:
        if not isinstance(self.any, int):
            return 0
        self.step()
        return self.any  # stale

    def enum_member(self) -> None:
        if self.state is State.A:
            return
        self.step()
        print(self.state)  # stale

    def enum_equal(self) -> None:
        if self.state == State.A:
            return
        self.step()
        print(self.state)  # stale

    def literal(self, other: Other) -> None:
        if other.kind == "a":
            return
        self.step()
        print(other.kind)  # stale

    def one_of(self) -> int:
        if self.x not in (1, 2):
            return 0
        self.step()
        return self.x  # stale

    def matched(self) -> None:
        match self.state:
            case State.A:
                self.step()
                print(self.state)  # stale
            case _:
                print(self.state)

    def item(self) -> int | None:
        if self.items[0] is None:
            return None
        self.step()
        return self.items[0].x  # stale

    def of_a_property(self) -> str:
        if self.failure is None:
            return ""
        self.step()
        return self.failure  # stale

    def of_an_alias(self, other: "Machine") -> int:
        if self.x is None:
            return 0
        other.x = None
        return self.x  # stale

    def comes_round(self, numbers: list[int]) -> list[int]:
        if self.numbers is None:
            return []
        return [self.called_back() for _ in numbers for number in self.numbers]  # stale

    # --- every way to run something else ---

    async def awaited(self) -> int:
        if self.x is None:
            return 0
        await self.wait()
        return self.x  # stale

    def called_back(self) -> int:
        if self.x is None:
            return 0
        self.call()
        return self.x  # stale

    def in_an_argument(self) -> int:
        if self.x is None:
            return 0
        return max(self.called_back(), self.x)  # stale

    def in_the_condition(self) -> int:
        return self.x if self.x is not None and self.called_back() else 0  # stale

    def in_a_loop(self) -> int:
        if self.x is None:
            return 0
        total = 0
        for _ in range(3):
            total += self.x  # stale
            self.step()
        return total

    def in_a_while_loop(self) -> int:
        if self.x is None:
            return 0
        while self.x < 3:  # stale
            self.step()
        return 0

    def in_one_branch(self, really: bool) -> int:
        if self.x is None:
            return 0
        if really:
            self.step()
        return self.x  # stale

    def in_a_try(self) -> int:
        if self.x is None:
            return 0
        try:
            self.step()
        except ValueError:
            return self.x  # stale
        return 0

    def with_a_key(self, numbers: list[int]) -> int:
        if self.x is None:
            return 0
        numbers.sort(key=lambda number: self.called_back() + number)
        return self.x  # stale

    def in_a_comprehension(self, numbers: list[int]) -> list[int]:
        if self.x is None:
            return []
        return [number + self.called_back() + self.x for number in numbers]  # stale

    # --- nothing of this ---

    def reads_at_once(self) -> int:
        return 0 if self.x is None else self.x

    def reads_behind_builtins(self, numbers: list[int]) -> int:
        if self.x is None:
            return 0
        numbers.append(len(numbers))
        return self.x

    def goes_through_it_once(self) -> list[int]:
        if self.numbers is None:
            return []
        return [number + self.called_back() for number in self.numbers]

    def reads_of_its_own_kind(self, path: Path) -> Path:
        self.step()
        return path.parent

    def reads_a_local(self) -> int:
        x = self.x
        if x is None:
            return 0
        self.step()
        return x

    def reads_what_a_constructor_set(self) -> int:
        if self.once is None:
            return 0
        self.step()
        return self.once

    def tests_again(self) -> int:
        while self.x is not None:
            self.step()
        return 0

    def calls_elsewhere(self) -> int:
        if self.x is None:
            self.step()
            return 0
        return self.x

    def calls_and_leaves(self, really: bool) -> int:
        if self.x is None:
            return 0
        if really:
            self.step()
            raise ValueError
        return self.x

    def sets_it_anew(self) -> int:
        if self.x is None:
            self.step()
            self.x = 1
        return self.x
"""


@pytest.mark.slow
@pytest.mark.gate
@pytest.mark.timeout(300)
def test_no_compiled_function_reads_what_a_call_may_have_changed() -> None:
    files = [path.relative_to(ROOT) for path in compiled_modules()]
    types = typed(files, ROOT)
    constants = Constants(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    found = [
        f"{file}:{read.line}: {read.name} is {read.narrowed} to the compiler, and may be {read.declared}"
        for file in files
        for read in stale_reads((ROOT / file).read_text(), types[file], constants)
    ]
    assert found == [], "a call above may have set it: read it into a local variable, or through a method"


@pytest.mark.timeout(300)
def test_every_planted_read_is_found_and_no_other(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    planted = tmp_path / "planted.py"
    planted.write_text(PLANTED)
    types = typed([Path("planted.py")], tmp_path)[Path("planted.py")]
    found = {read.line for read in stale_reads(PLANTED, types, Constants([planted]))}
    lines = PLANTED.splitlines()
    expected = {number for number, line in enumerate(lines, 1) if line.endswith("# stale")}
    assert [lines[number - 1] for number in sorted(expected ^ found)] == []
