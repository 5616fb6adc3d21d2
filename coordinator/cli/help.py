# SPDX-License-Identifier: Apache-2.0
"""The help of commands: without the names of Python's types, and with examples."""

import re
from collections.abc import Mapping
from typing import Any, Final

import typer
from typer.core import TyperCommand

EXAMPLES: Final[Mapping[str, tuple[str, ...]]] = {
    "serve": (
        "groupkeeper serve --data-dir data",
        "groupkeeper serve --config groupkeeper.toml --set log.level=debug",
    ),
    "status": ("groupkeeper status", "groupkeeper status --node 10.0.0.5:9308 --watch 5"),
    "settings": ("groupkeeper settings > groupkeeper.toml",),
    "metrics": ("groupkeeper metrics > metrics.md",),
    "import": (
        "groupkeeper import --from-log-dirs /var/lib/kafka --data-dir data",
        "groupkeeper import --from-log-dirs /var/lib/kafka --data-dir data --execute",
        "groupkeeper import --from-bootstrap kafka:9092 --group 'orders-*' --execute",
    ),
    "adopt": (
        "groupkeeper adopt --all --data-dir data",
        "groupkeeper adopt --group orders --data-dir data --execute",
    ),
    "give-back": (
        "groupkeeper give-back --group orders --data-dir data",
        "groupkeeper give-back --group orders --data-dir data --execute",
    ),
    "audit": (
        "groupkeeper audit --log-dirs data --out audit-results",
        "groupkeeper audit --log-dirs data --out audit-results --fail-on warning",
    ),
    "groups list": (
        "groupkeeper groups list --state Empty",
        "groupkeeper groups list 'orders-*' --json",
    ),
    "groups describe": (
        "groupkeeper groups describe orders",
        "groupkeeper groups describe 'orders-*' --offsets --watch 5",
    ),
    "groups delete": (
        "groupkeeper groups delete orders --execute",
        "groupkeeper groups delete 'orders-*' --pattern",
    ),
    "groups remove-members": (
        "groupkeeper groups remove-members orders --all-members",
        "groupkeeper groups remove-members orders --instance worker-3 --execute",
    ),
    "groups reset": (
        "groupkeeper groups reset orders --topic invoices --to-earliest",
        "groupkeeper groups reset orders --topic invoices:0 --to-offset 12 --execute",
        "groupkeeper groups reset orders --all-topics --by-duration PT1H --execute",
    ),
    "groups delete-offsets": (
        "groupkeeper groups delete-offsets orders --topic invoices --execute",
        "groupkeeper groups delete-offsets orders --from-file old.csv",
    ),
    "groups copy": (
        "groupkeeper groups copy orders orders-v2 --execute",
        "groupkeeper groups copy orders orders --to-bootstrap other:9092",
    ),
    "groups export": ("groupkeeper groups export --all-groups > offsets.csv",),
    "groups import": ("groupkeeper groups import offsets.csv --execute",),
    "groups expiring": ("groupkeeper groups expiring --within 2d",),
    "topics list": ("groupkeeper topics list 'orders-*'",),
    "topics describe": ("groupkeeper topics describe orders",),
    "topics create": (
        "groupkeeper topics create orders --partitions 12",
        "groupkeeper topics create jobs --config groupkeeper.end.group=jobs-made",
    ),
    "topics alter": (
        "groupkeeper topics alter orders --config retention.ms=86400000",
        "groupkeeper topics alter jobs --config groupkeeper.end.group=jobs-made",
        "groupkeeper topics alter orders --delete-config retention.ms --execute",
    ),
    "topics add-partitions": ("groupkeeper topics add-partitions orders --partitions 24",),
    "topics delete": ("groupkeeper topics delete orders --execute",),
    "log check": ("groupkeeper log check --data-dir data",),
    "log repair": (
        "groupkeeper log repair --partition 7 --data-dir data",
        "groupkeeper log repair --partition 7 --data-dir data --execute",
    ),
    "partitions list": ("groupkeeper partitions list --data-dir data",),
    "partitions move": ("groupkeeper partitions move 7 --to 2 --data-dir data",),
    "partitions drain": ("groupkeeper partitions drain 2 --data-dir data",),
}
"""The examples of each command, by its words."""
_TYPE: Final = re.compile(r" <[^<>]+>$")


class CommandWithPlainHelp(TyperCommand):
    """A command whose help names its arguments without their types in Python, which say nothing to its users."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments and the options."""
        records: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None:
                name, text = record
                is_argument = param.param_type_name == "argument"
                records["Arguments" if is_argument else "Options"].append((_TYPE.sub("", name), text))
        for title, rows in records.items():
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


def add_examples(tree: typer.Typer, words: tuple[str, ...] = ()) -> None:
    """Give every command below `tree` its examples, and the plain help."""
    for info in tree.registered_commands:
        assert info.callback is not None, "a command has a function"
        name = info.name or info.callback.__name__.replace("_", "-")
        examples = EXAMPLES.get(" ".join((*words, name)))
        if examples is not None:
            if not issubclass(info.cls or TyperCommand, CommandWithPlainHelp):
                info.cls = CommandWithPlainHelp
            info.epilog = "\n".join(("\b", "Examples:", *(f"  {example}" for example in examples)))
    for group in tree.registered_groups:
        if group.typer_instance is not None:
            add_examples(group.typer_instance, (*words, str(group.name)))
