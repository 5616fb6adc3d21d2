# SPDX-License-Identifier: Apache-2.0
"""Compiles the hot path with mypyc while a wheel is built.

The modules are named in pyproject.toml; the sources stay in the wheel beside what is made of them, and are what runs
where nothing was compiled. Where they cannot be compiled, for want of a C compiler or of Python's headers, the wheel
holds the sources alone and one line of the build's output says why (`pip -v` shows it). An image or a CI job that must
not end up with that sets REQUIRE_COMPILED=1 or CI: then the build fails. `HATCH_BUILD_NO_HOOKS=true` does not try.
"""

import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CannotCompile(Exception):
    """Nothing was compiled; the text says why."""


class CompileHook(BuildHookInterface[Any]):
    """Adds the compiled modules to a wheel, which is for one Python and one platform then."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile. An editable install is for editing: there the sources run."""
        if version == "editable":
            return
        self._work = tempfile.TemporaryDirectory(prefix="groupkeeper-build-")
        made = Path(self._work.name) / "made"
        try:
            _compile(chosen_modules(Path(self.root), self.config["modules"]), Path(self._work.name), made)
        except CannotCompile as error:
            if os.environ.get("REQUIRE_COMPILED") or os.environ.get("CI"):
                raise
            self.app.display_warning(f"groupkeeper is not compiled, so it works but is slower: {error}")
            return
        for library in made.rglob("*.so"):
            build_data["force_include"][str(library)] = str(library.relative_to(made))
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what the compiler left."""
        if hasattr(self, "_work"):
            self._work.cleanup()


def chosen_modules(root: Path, patterns: list[str]) -> list[str]:
    """The files below `root` that are compiled; a pattern that begins with "!" takes some out again."""
    chosen: dict[Path, None] = {}  # a set that keeps their order
    for pattern in patterns:
        found = dict.fromkeys(sorted(root.glob(pattern.removeprefix("!"))))
        chosen = {path: None for path in chosen if path not in found} if pattern[0] == "!" else chosen | found
    return [str(path.relative_to(root)) for path in chosen if path.name != "__init__.py"]


def _compile(modules: list[str], work: Path, made: Path) -> None:
    """Put a library for each module below `made`. Raises CannotCompile."""
    from mypyc.build import mypycify
    from setuptools import Extension

    # First next to nothing: mypyc's own work, which comes before the compiler's, takes half a minute.
    probe = work / "probe.c"
    probe.write_text("#include <Python.h>\n")
    try:
        _build([Extension("probe", [str(probe)])], work, work / "probe")
    except Exception as error:
        raise CannotCompile("there is no C compiler that works, or no headers of this Python") from error
    os.environ.setdefault("MYPY_CACHE_DIR", str(work / "cache"))
    try:
        extensions = mypycify(
            modules, opt_level="1", debug_level="0", multi_file=True, target_dir=str(work / "c")
        )
        _build(extensions, work, made)
    except SystemExit as error:
        raise CannotCompile("mypyc does not take the sources; what it says is above this line") from error
    except Exception as error:
        raise CannotCompile("the C compiler failed; what it says is above this line") from error


def _build(extensions: list[Any], work: Path, made: Path) -> None:
    from setuptools import Distribution
    from setuptools.command.build_ext import build_ext

    class BuildOnAllCores(build_ext):  # type: ignore[misc]  # setuptools has no types
        """setuptools compiles the files of an extension one after the other, and most of ours are in one."""

        def build_extensions(self) -> None:
            compile_files = self.compiler.compile

            def compile_on_all_cores(sources: list[str], *more: Any, **named: Any) -> list[str]:
                with ThreadPoolExecutor(os.cpu_count()) as pool:
                    made = pool.map(lambda source: compile_files([source], *more, **named), sources)
                    return [library for libraries in made for library in libraries]

            self.compiler.compile = compile_on_all_cores
            super().build_extensions()

    command = BuildOnAllCores(Distribution({"name": "groupkeeper", "ext_modules": extensions}))
    command.build_lib, command.build_temp = str(made), str(work / "objects")
    command.ensure_finalized()
    command.run()
