# SPDX-License-Identifier: Apache-2.0
"""Which modules are compiled: pyproject.toml names them for hatch_build.py."""

import tomllib
from pathlib import Path
from typing import Any

from bench.installed import ROOT
from hatch_build import chosen_modules

__all__ = ["ROOT", "compiled_modules", "named"]


def named() -> list[str]:
    """What pyproject.toml names: paths and patterns, and with "!" before them what is left out of those."""
    wheel: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    modules: list[str] = wheel["targets"]["wheel"]["hooks"]["custom"]["modules"]
    return modules


def compiled_modules() -> list[Path]:
    """The files that are compiled."""
    return [ROOT / path for path in chosen_modules(ROOT, named())]
