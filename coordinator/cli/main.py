# SPDX-License-Identifier: Apache-2.0
"""The entry point of `groupkeeper` and its tree of commands."""

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from coordinator.cli import log, partition_commands
from coordinator.cli.audit import ACCEPT_ALL, AuditCommand, audit
from coordinator.cli.errors import EXIT_USAGE, CommandError, exit_on_errors
from coordinator.cli.groups.app import app as groups
from coordinator.cli.help import add_examples
from coordinator.cli.import_broker import import_broker
from coordinator.cli.moving.commands import adopt, give_back
from coordinator.cli.serve import serve
from coordinator.cli.status import status
from coordinator.cli.topics.app import app as topics
from coordinator.cli.usage_errors import exit_on_usage_errors
from coordinator.version import __version__, is_compiled


class _Commands(TyperGroup):
    """The tree of commands: usage errors are one line, and flags that contradict each other are refused for all."""

    def make_context(self, *args: Any, **extra: Any) -> Any:
        with exit_on_usage_errors():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: Any) -> Any:
        with exit_on_usage_errors():
            return super().invoke(ctx)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if {"--execute", "--dry-run"} <= set(args):
            raise CommandError("expected either --execute or --dry-run", EXIT_USAGE)
        return super().parse_args(ctx, args)


app = typer.Typer(
    name="groupkeeper",
    cls=_Commands,
    help="A standalone coordinator for Kafka consumer groups.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # a traceback is for a log: plain, and without the values of variables
    rich_markup_mode=None,
)
app.command()(serve)
app.command("import")(import_broker)
app.command()(adopt)
app.command("give-back")(give_back)
app.command()(status)
app.command(cls=AuditCommand, context_settings=ACCEPT_ALL)(audit)
app.add_typer(groups, name="groups")
app.add_typer(topics, name="topics")
app.add_typer(log.app, name="log")
app.add_typer(partition_commands.app, name="partitions")


@app.command()
def settings(
    markdown: Annotated[bool, typer.Option("--markdown", help="Print a Markdown page instead.")] = False,
) -> None:
    """Print every setting with its default, as a config file."""
    from coordinator.config import example, reference

    with exit_on_errors():
        typer.echo((reference if markdown else example).render(), nl=False)


@app.command()
def metrics() -> None:
    """Print every metric with its meaning, as a Markdown page."""
    from coordinator.admin.reference import metrics_markdown_page

    with exit_on_errors():
        typer.echo(metrics_markdown_page.render(), nl=False)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"groupkeeper {__version__}{' (compiled)' if is_compiled() else ''}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    pass


add_examples(app)


def main() -> None:
    """Run the command line of this process, and end the process with the command's exit code."""
    app(prog_name="groupkeeper")


if __name__ == "__main__":
    main()
