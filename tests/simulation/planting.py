# SPDX-License-Identifier: Apache-2.0
"""Plants a bug: a mutant is loaded in place of its module's source, in a process of its own."""

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[2]
BEFORE_A_CLUSTER: Final = (
    "coordinator.gateway.",
    "coordinator.migration.model",
    "coordinator.migration.protocol",
    "coordinator.upstream.",
)
"""What runs only in a gateway."""


class Mutant(NamedTuple):
    """One bug: in `module`, what stands there once is replaced with something else."""

    name: str
    module: str
    old: str
    new: str
    also: tuple[str, str] | None = None
    """Another replacement, where one alone is made good by another part."""
    seed: int = 1
    """One that finds it."""

    @property
    def is_of_gateway(self) -> bool:
        """Whether it is to be found where a gateway runs before a cluster."""
        return self.module.startswith(BEFORE_A_CLUSTER)

    def source(self) -> str:
        """The module with the bug. Raises ValueError when the code is not what the mutant was written for."""
        text = path_of(self.module).read_text()
        for old, new in ((self.old, self.new), *([self.also] if self.also else [])):
            if text.count(old) != 1:
                raise ValueError(
                    f"mutant {self.name}: {old!r} stands {text.count(old)} times in {self.module}"
                )
            text = text.replace(old, new)
        return text


def path_of(module: str) -> Path:
    """Where a module's source is."""
    return ROOT / (module.replace(".", "/") + ".py")


class _Loader(importlib.abc.InspectLoader):
    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant

    def get_source(self, fullname: str) -> str:
        return self._mutant.source()

    def get_code(self, fullname: str) -> CodeType:
        return compile(self.get_source(fullname), str(path_of(fullname)), "exec")


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._mutant.module:
            return None
        return importlib.util.spec_from_loader(fullname, _Loader(self._mutant), origin=str(path_of(fullname)))


def load(mutant: Mutant) -> None:
    """Put a mutant in its module's place; before anything imports that."""
    assert mutant.module not in sys.modules, f"{mutant.module} was imported too early"
    sys.meta_path.insert(0, _Finder(mutant))
