# SPDX-License-Identifier: Apache-2.0
"""The tree of the commands of `groupkeeper groups`."""

import typer

from coordinator.cli.expiring import expiring
from coordinator.cli.groups.copying import copy
from coordinator.cli.groups.delete import delete
from coordinator.cli.groups.delete_offsets import delete_offsets
from coordinator.cli.groups.describe import describe
from coordinator.cli.groups.export import export
from coordinator.cli.groups.importing import import_offsets
from coordinator.cli.groups.listing import list_groups
from coordinator.cli.groups.remove_members import remove_members
from coordinator.cli.groups.reset import reset

app = typer.Typer(
    help="Show and change groups of any Kafka.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.command("list")(list_groups)
app.command("describe")(describe)
app.command("delete")(delete)
app.command("remove-members")(remove_members)
app.command("reset")(reset)
app.command("delete-offsets")(delete_offsets)
app.command("copy")(copy)
app.command("export")(export)
app.command("import")(import_offsets)
app.command("expiring")(expiring)
