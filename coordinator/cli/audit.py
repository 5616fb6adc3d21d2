# SPDX-License-Identifier: Apache-2.0
"""`groupkeeper audit`: its flags and all the rest are the audit's own, which needs Spark only to run."""

import typer

ACCEPT_ALL = {"ignore_unknown_options": True, "allow_extra_args": True}


def audit(context: typer.Context) -> None:
    """Audit a log on Spark."""
    from audit.cli import main

    raise typer.Exit(main(context.args))
