# SPDX-License-Identifier: Apache-2.0
"""The failures of commands: one line on standard error and an exit code."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NoReturn

import typer

from coordinator.config.values import ConfigError
from coordinator.telemetry.escaping import escape_unprintable

EXIT_FAILED: Final = 1
"""The exit code if a command could not do its work: no connection, no such group."""
EXIT_USAGE: Final = 2
"""The exit code if a command makes no sense: a bad flag or setting."""


class CommandError(Exception):
    """Ends the command with this one line and exit code."""

    def __init__(self, message: str, exit_code: int = EXIT_FAILED) -> None:
        super().__init__(message)
        self.exit_code = exit_code


@contextmanager
def exit_on_errors() -> Iterator[None]:
    """Turn the errors that a user can do something about into one line and an exit code."""
    try:
        yield
        sys.stdout.flush()
    except ConfigError as error:
        print_error_and_exit(str(error), EXIT_USAGE)
    except CommandError as error:
        print_error_and_exit(str(error), error.exit_code)
    except BrokenPipeError:
        # the reader of our output (head, less) has closed it; the last flush must not fail either
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(EXIT_FAILED) from None


def print_error_and_exit(message: str, exit_code: int) -> NoReturn:
    """Print one line on standard error and end the command."""
    print_error(message)
    raise typer.Exit(exit_code)


def print_error(message: str) -> None:
    """Print one line on standard error that says what is wrong."""
    print_line(f"groupkeeper: {message}", err=True)


def print_line(line: str, *, err: bool = False) -> None:
    """Print one line, with control characters as escapes, since names from clients may contain them."""
    typer.echo(escape_unprintable(line), err=err)
