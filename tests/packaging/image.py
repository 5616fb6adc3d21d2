# SPDX-License-Identifier: Apache-2.0
"""A Dockerfile without Docker: its stages, and a stage's build steps played below a directory of ours.

What may be copied is what .dockerignore leaves, as Docker's own library for Python reads it. The base images are not
there: Python is the one that runs the tests, and what only changes the system (packages, users) is for a real builder.
"""

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from docker.utils.build import exclude_paths
from dockerfile_parse import DockerfileParser

PLACES: Final = ("/opt/", "/src", "/tmp/")
"""Absolute directories that a stage's steps name, and that lie below the player's root instead."""


@dataclass
class Stage:
    """One FROM with its instructions, in order."""

    name: str
    base: str
    steps: list[tuple[str, str]] = field(default_factory=list)

    def values(self, instruction: str) -> list[str]:
        """What stands behind each of these instructions."""
        return [value for name, value in self.steps if name == instruction]

    def copies(self) -> list[tuple[str | None, list[str], str]]:
        """Of each COPY the stage it takes from (None: the context), its sources and its target."""
        found = []
        for value in self.values("COPY"):
            words = shlex.split(value)
            flags = dict(word[2:].split("=", 1) for word in words if word.startswith("--"))
            *sources, target = [word for word in words if not word.startswith("--")]
            found.append((flags.get("from"), sources, target))
        return found

    def environment(self) -> dict[str, str]:
        """What its ENV instructions set, as they are written."""
        return dict(word.split("=", 1) for value in self.values("ENV") for word in shlex.split(value))


def stages(dockerfile: Path) -> dict[str, Stage]:
    """All stages by name, in order; the last one is what `docker build .` makes."""
    found: dict[str, Stage] = {}
    for step in DockerfileParser(path=str(dockerfile)).structure:
        instruction, value = step["instruction"], step["value"]
        if instruction == "FROM":
            base, _, name = re.split(r"\s+(AS)\s+", value)
            found[name] = Stage(name, base)
        elif instruction != "COMMENT":
            list(found.values())[-1].steps.append((instruction, value))
    return found


def copy_context(tree: Path, to: Path) -> None:
    """Copy what a builder gets of a tree: what its .dockerignore leaves."""
    lines = (tree / ".dockerignore").read_text().splitlines()
    patterns = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    for path in sorted(exclude_paths(str(tree), patterns)):
        target = to / path
        if (tree / path).is_dir():
            target.mkdir(parents=True, exist_ok=True)
        elif Path(path).name not in ("Dockerfile", ".dockerignore"):  # sent along, but not to be copied from
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(tree / path, target)


def play(stage: Stage, context: Path, root: Path, environment: Mapping[str, str]) -> None:
    """Do what a build stage says, with absolute places below `root`. AssertionError where a step fails.

    Only ENV, WORKDIR, COPY from the context and RUN are played; `environment` is what there is before the first ENV.
    """
    inside = {**environment, **stage.environment()}
    inside["PATH"] = f"{_python(root)}:{inside['PATH']}"
    workdir = root
    for instruction, value in stage.steps:
        if instruction == "WORKDIR":
            workdir = root / value.lstrip("/")
            workdir.mkdir(parents=True, exist_ok=True)
        elif instruction == "COPY":
            *sources, target = shlex.split(value)
            for source in sources:
                _copy(context / source, workdir / target)
        elif instruction == "RUN":
            command = re.sub(rf"(?<![\w./])({'|'.join(PLACES)})", rf"{root}\1", value)
            done = subprocess.run(
                ["/bin/sh", "-c", command],
                cwd=workdir,
                env=inside,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, f"RUN {value}\n{done.stdout[-4000:]}{done.stderr[-4000:]}"


def _python(root: Path) -> Path:
    """A directory with a `python` that makes environments as the image's does."""
    directory = root / "bin"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "python").symlink_to(
        Path(sys.base_prefix, "bin", f"python{sys.version_info[0]}.{sys.version_info[1]}")
    )
    return directory


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    else:
        shutil.copy2(source, target)
