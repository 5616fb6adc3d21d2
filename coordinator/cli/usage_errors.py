# SPDX-License-Identifier: Apache-2.0
"""Usage errors of the command line in the one line that all errors of commands have."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from typer._click.exceptions import NoArgsIsHelpError, UsageError

from coordinator.cli.errors import EXIT_USAGE, CommandError, exit_on_errors

_BAD_VALUE: Final = re.compile(r"Invalid value for '([^']+)': (.*)", re.DOTALL)
_BARE: Final = re.compile(r"Option '([^']+)' requires an argument\.?")
_MISSING: Final = re.compile(r"Missing (?:argument|option|parameter) '([^']+)'\.?.*", re.DOTALL)
_SIMILAR: Final = re.compile(r" \((?:Possible options: |Did you mean )([^)?]*)\??\)")
_EXPECTED: Final = (
    (re.compile(r"Input should be a valid integer\b.*", re.DOTALL), "expected a whole number"),
    (re.compile(r"Input should be a valid number\b.*", re.DOTALL), "expected a number"),
    (re.compile(r"Input should be greater than or equal to (\S+)"), r"expected \1 or more"),
    (re.compile(r"Input should be less than or equal to (\S+)"), r"expected \1 or less"),
)
"""The texts of the library that checks values, and what we say."""


@contextmanager
def exit_on_usage_errors() -> Iterator[None]:
    """As `exit_on_errors`, also for usage errors; a command that lacks its subcommand still prints its help."""
    with exit_on_errors():
        try:
            yield
        except NoArgsIsHelpError:
            raise
        except UsageError as error:
            raise _translate(error) from None


def _translate(error: UsageError) -> CommandError:
    """Return the error in one line, which ends with the command that shows the help."""
    context = error.ctx
    see = "" if context is None else f" (see {context.command_path} --help)"
    return CommandError(f"{_describe(error.format_message())}{see}", EXIT_USAGE)


def _describe(message: str) -> str:
    if (bad := _BAD_VALUE.fullmatch(message)) is not None:
        return f"{bad[1]}: {_expected(bad[2])}"
    if (bare := _BARE.fullmatch(message)) is not None:
        return f"{bare[1]}: expected a value"
    if (missing := _MISSING.fullmatch(message)) is not None:
        return f"expected {missing[1]}"
    message = _SIMILAR.sub(r"; there is \1", message)
    return f"{message[:1].lower()}{message[1:].rstrip('.')}"


def _expected(text: str) -> str:
    for pattern, ours in _EXPECTED:
        if (found := pattern.fullmatch(text)) is not None:
            return found.expand(ours)
    return text.rstrip(".")
