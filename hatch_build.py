# SPDX-License-Identifier: Apache-2.0
"""Compiles the hot path with mypyc while a wheel is built.

The modules are named in pyproject.toml; the sources stay in the wheel beside what is made of them, and are what runs
where nothing was compiled. `HATCH_BUILD_NO_HOOKS=true` leaves it out: for machines without a C compiler.
"""

import os
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompileHook(BuildHookInterface[Any]):
    """Adds the compiled modules to a wheel, which is for one Python and one platform then."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile. An editable install is for editing: there the sources run."""
        if version == "editable":
            return
        self._work = tempfile.TemporaryDirectory(prefix="groupkeeper-build-")
        made = Path(self._work.name) / "made"
        _compile(self._modules(), Path(self._work.name), made)
        for library in made.rglob("*.so"):
            build_data["force_include"][str(library)] = str(library.relative_to(made))
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what the compiler left."""
        if hasattr(self, "_work"):
            self._work.cleanup()

    def _modules(self) -> list[str]:
        root = Path(self.root)
        found = [
            path.relative_to(root)
            for pattern in self.config["modules"]
            for path in sorted(root.glob(pattern))
            if path.name != "__init__.py"
        ]
        return [str(path) for path in found]


def _compile(modules: list[str], work: Path, made: Path) -> None:
    from mypyc.build import mypycify
    from setuptools import Distribution
    from setuptools.command.build_ext import build_ext

    os.environ.setdefault("MYPY_CACHE_DIR", str(work / "cache"))
    extensions = mypycify(
        modules, opt_level="1", debug_level="0", multi_file=True, target_dir=str(work / "c")
    )
    command = build_ext(Distribution({"name": "groupkeeper", "ext_modules": extensions}))
    command.build_lib, command.build_temp = str(made), str(work / "objects")
    command.ensure_finalized()
    command.run()
