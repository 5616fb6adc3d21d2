# SPDX-License-Identifier: Apache-2.0
"""A reader of the documentation, who types its commands in a shell, with placeholders replaced."""

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from bench.installed import groupkeeper
from tests.support.processes import ServerProcess, environment, tied_to_us

NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


class Documented:
    """The documented commands that a test has to run (tests/documented.py), and a place to run them in.

    A command is given as it is documented, with the text to replace: placeholders, addresses, paths, and flags that
    make it smaller. Each text must be in the command.
    """

    def __init__(self, commands: Sequence[str], work: Path) -> None:
        """Prepare the directory `work`, with `groupkeeper` and Python in `.venv/bin`, as in a checkout."""
        self.commands = tuple(commands)
        self.work = work
        self._bin = work / ".venv" / "bin"
        self._bin.mkdir(parents=True)
        self._ran: set[str] = set()
        self.add_program("groupkeeper", *groupkeeper())
        for name in ("python", "python3"):
            self.add_program(name, sys.executable)

    def add_program(self, name: str, *command: object) -> None:
        """Put a program on the PATH that runs this command with further arguments."""
        script = self._bin / name
        script.write_text(f'#!/bin/sh\nexec {shlex.join(map(str, command))} "$@"\n')
        script.chmod(0o755)

    def line(self, command: str, places: Mapping[str, object] = NOTHING) -> str:
        """The line to type for a command of the test, which then counts as run: for a caller that runs it itself."""
        assert command in self.commands, f"add it to tests/documented.py: {command}"
        self._ran.add(command)
        line = command
        for placeholder, value in places.items():
            assert placeholder in command, f"{placeholder} is not in: {command}"
            line = line.replace(placeholder, str(value))
        return line

    def run(
        self,
        command: str,
        places: Mapping[str, object] = NOTHING,
        *,
        status: int | None = 0,
        cwd: Path | None = None,
        variables: Mapping[str, str] = NOTHING,
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command in a shell until it ends by itself, with this exit status; None is for any."""
        line = self.line(command, places)
        done = subprocess.run(
            tied_to_us(["/bin/sh", "-c", line]),
            capture_output=True,
            text=True,
            check=False,
            cwd=cwd or self.work,
            env=self.environment(variables),
        )
        assert status in (None, done.returncode), (
            f"{line}: exit status {done.returncode}\n{done.stdout}{done.stderr}"
        )
        return done

    def start(
        self,
        command: str,
        places: Mapping[str, object] = NOTHING,
        *,
        variables: Mapping[str, str] = NOTHING,
    ) -> ServerProcess:
        """Start a command that does not end by itself; the caller ends it. Its output goes to `output` in `work`."""
        shell = ["/bin/sh", "-c", f"exec {self.line(command, places)}"]
        return ServerProcess(shell, self.work / "output", env=self.environment(variables), cwd=self.work)

    def environment(self, variables: Mapping[str, str] = NOTHING) -> dict[str, str]:
        """The environment of the commands: ours with the programs of this place, and these variables."""
        return environment({"PATH": f"{self._bin}{os.pathsep}{os.environ['PATH']}", **variables})

    def assert_all_ran(self) -> None:
        """Raise AssertionError if the test has ended without a command that belongs to it."""
        missing = [command for command in self.commands if command not in self._ran]
        assert missing == [], f"the test is to run these documented commands, and has not: {missing}"
