# SPDX-License-Identifier: Apache-2.0
"""The command `groupkeeper audit`, which passes all flags to the audit; only running it needs Spark."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import typer

from coordinator.cli.help import CommandWithPlainHelp

ACCEPT_ALL = {"ignore_unknown_options": True, "allow_extra_args": True}


class AuditCommand(CommandWithPlainHelp):
    """The command with the help of the audit's options, which `audit.cli` declares, since Spark can start it alone."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options of the audit."""
        from audit.cli import describe_options

        with formatter.section("Options"):
            formatter.write_dl(list(describe_options()))


def audit(context: typer.Context) -> None:
    """Audit a log on Spark.

    Reports whether the log of a node or a broker can be trusted, and what its groups did.

    Exit code 0: no findings at or above --fail-on; 1: there are such findings; 2: the command is invalid, or the audit
    could not run.
    """
    from audit.cli import main

    raise typer.Exit(main(context.args, find_end_groups=find_end_groups))


def find_end_groups(log_dirs: Sequence[str]) -> Iterator[str]:
    """Yield the end groups that the topics of nodes name in their settings, by the nodes' data directories.

    A directory without a catalogue is a broker's, or is not local. A catalogue that cannot be read is reported: the log
    can be audited all the same.
    """
    from coordinator.catalogue.file import FILE_NAME
    from coordinator.catalogue.file_format import decode
    from coordinator.catalogue.topic_configs import END_GROUP
    from storage.errors import StorageError

    for directory in log_dirs:
        path = Path(directory) / FILE_NAME
        try:
            topics = decode(path.read_bytes(), path).catalogue
        except FileNotFoundError:
            continue
        except (OSError, StorageError) as error:
            print(f"groupkeeper: the end groups of topics are not known: {error}", file=sys.stderr)  # noqa: T201 - the output of the command
            continue
        yield from (topic.configs[END_GROUP] for topic in topics if END_GROUP in topic.configs)
