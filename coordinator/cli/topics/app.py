# SPDX-License-Identifier: Apache-2.0
"""The tree of the commands of `groupkeeper topics`."""

import typer

from coordinator.cli.topics.changing import add_partitions, alter, create, delete
from coordinator.cli.topics.showing import describe, list_topics

app = typer.Typer(
    help="Show and change topics of any Kafka.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.command("list")(list_topics)
app.command("describe")(describe)
app.command("create")(create)
app.command("alter")(alter)
app.command("add-partitions")(add_partitions)
app.command("delete")(delete)
