# SPDX-License-Identifier: Apache-2.0
"""The command `groupkeeper audit`, which passes all flags to the audit; only running it needs Spark."""

import typer

ACCEPT_ALL = {"ignore_unknown_options": True, "allow_extra_args": True}


def audit(context: typer.Context) -> None:
    """Audit a log on Spark."""
    from audit.cli import main

    raise typer.Exit(main(context.args))
