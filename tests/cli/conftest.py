# SPDX-License-Identifier: Apache-2.0
"""Running the command line in this process."""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from typer.testing import CliRunner

from coordinator.cli.main import app
from coordinator.config import Settings


class Outcome(NamedTuple):
    """What a command printed and how it ended."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        assert self.exit_code == 0, self.stderr
        return json.loads(self.stdout)

    @property
    def rows(self) -> list[list[str]]:
        """The lines of the tables, in cells."""
        assert self.exit_code == 0, self.stderr
        return [
            [cell.strip() for cell in line.split("   ") if cell.strip()] for line in self.stdout.splitlines()
        ]


Command = Callable[..., Outcome]


@pytest.fixture
def groupkeeper() -> Command:
    """Run `groupkeeper` with arguments; it sees no settings of the machine's environment."""
    return runner()


def runner(serve: Callable[[Settings], int] | None = None) -> Command:
    """Runs `groupkeeper` with arguments; `serve` takes the place of a node."""

    def run(*arguments: str, **environment: str) -> Outcome:
        result = CliRunner().invoke(app, arguments, env=environment, prog_name="groupkeeper", obj=serve)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Outcome(result.exit_code, result.stdout, result.stderr)

    return run
