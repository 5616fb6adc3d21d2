# SPDX-License-Identifier: Apache-2.0
"""The flags that many commands share, and the objects made from them."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from coordinator.cli.errors import EXIT_USAGE, CommandError
from coordinator.config.sources import BOOTSTRAP_VARIABLE
from coordinator.config.values import Address

if TYPE_CHECKING:
    from coordinator.cli.cluster.client import Client

DEFAULT_BOOTSTRAP: Final = "127.0.0.1:9092"

Bootstrap = Annotated[
    str,
    typer.Option(
        "--bootstrap",
        "--bootstrap-server",
        metavar="HOST:PORT,...",
        envvar=BOOTSTRAP_VARIABLE,
        help="Nodes of the cluster to start with; the command asks the first one that it can reach for the others.",
    ),
]
CommandConfig = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="A file of Kafka's client properties for a cluster with TLS or passwords: security.protocol, "
        "sasl.mechanism, sasl.jaas.config, ssl.*",
    ),
]
Timeout = Annotated[
    float, typer.Option(metavar="SECONDS", min=0.1, help="How long to wait for responses in all.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Execute = Annotated[
    bool,
    typer.Option(
        "--execute/--dry-run", help="Make the changes; without --execute, the command only shows them."
    ),
]
Force = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Also change groups with members: remove the members, set the offsets, and let the members join again, "
        "which interrupts their work.",
    ),
]
Watch = Annotated[
    float | None,
    typer.Option(metavar="SECONDS", min=0.1, help="Repeat the output at this interval, until Ctrl-C."),
]
Groups = Annotated[
    list[str] | None,
    typer.Argument(metavar="GROUP", help="Group ids, or patterns: 'orders-*'.", show_default=False),
]
GroupNames = Annotated[
    list[str] | None,
    typer.Argument(metavar="GROUP", help="Group ids; with --pattern, patterns.", show_default=False),
]
GroupFlags = Annotated[
    list[str] | None,
    typer.Option("--group", metavar="GROUP", help="The same as GROUP; repeatable.", show_default=False),
]
AllGroups = Annotated[bool, typer.Option("--all-groups", help="All groups.")]
Topics = Annotated[
    list[str] | None,
    typer.Option(
        "--topic",
        metavar="TOPIC[:PARTITIONS]",
        help="A topic or a pattern, and optionally partitions: orders:0,2,4-7; repeatable.",
    ),
]
AllTopics = Annotated[
    bool, typer.Option("--all-topics", help="All partitions in which the group has committed offsets.")
]

NOTHING_DONE: Final = "dry run: nothing was changed; --execute makes the changes"


def make_client(
    bootstrap: str, command_config: Path | None, timeout_s: float, flag: str = "--bootstrap"
) -> "Client":
    """Return a client of the cluster that the flags name. Raises CommandError if they make no sense."""
    from coordinator.cli.cluster.client import Client
    from coordinator.cli.cluster.security import PLAINTEXT, read_security

    security = read_security(command_config) if command_config is not None else PLAINTEXT
    return Client(parse_addresses(bootstrap, flag), timeout_s, security)


def parse_addresses(text: str, flag: str = "--bootstrap") -> list[Address]:
    """Parse HOST:PORT, several with commas between them. Raises CommandError."""
    try:
        found = [Address.parse(part.strip()) for part in text.split(",") if part.strip()]
    except ValueError:
        found = []
    if not found:
        raise CommandError(f"{flag} {text}: expected HOST:PORT, or several separated by commas", EXIT_USAGE)
    return found


@dataclass(frozen=True)
class ClusterOptions:
    """The cluster that a command works on."""

    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP
    command_config: CommandConfig = None
    timeout: Timeout = 15.0

    def connect(self) -> "Client":
        """Return a client of the cluster. Raises CommandError if the flags make no sense."""
        return make_client(self.bootstrap, self.command_config, self.timeout)


@dataclass(frozen=True)
class GroupSelection:
    """The groups that a command works on."""

    group: Groups = None
    group_flags: GroupFlags = None
    all_groups: AllGroups = False

    @property
    def names(self) -> list[str]:
        """The names and patterns in the command, as arguments and as flags."""
        return [*(self.group or ()), *(self.group_flags or ())]

    @property
    def is_single_group_id(self) -> bool:
        """True if one group is named by its id."""
        from coordinator.cli.cluster.groups import is_pattern

        return len(self.names) == 1 and not is_pattern(self.names[0])

    def resolve_group_ids(self, client: "Client") -> list[str]:
        """Return the ids of the groups.

        Raises CommandError if none is named, or none matches a pattern; --all-groups may return none.
        """
        from coordinator.cli.cluster.groups import list_groups

        if bool(self.names) == self.all_groups:
            raise CommandError(
                f"expected {'only one of ' if self.names else ''}groups (or patterns of them) or --all-groups",
                EXIT_USAGE,
            )
        if self.all_groups:
            return [each.group for each in list_groups(client)]
        return self._named(client)

    def _named(self, client: "Client") -> list[str]:
        from coordinator.cli.cluster.groups import expand_group_patterns

        found = expand_group_patterns(client, self.names)
        if not found:
            raise CommandError(f"no group matches {', '.join(self.names)}")
        return found


@dataclass(frozen=True)
class GroupsToChange(GroupSelection):
    """The groups that a command changes: names are patterns only with --pattern.

    Without --pattern, the name of a deleted group, like `orders-[eu]`, would match other groups when a script runs
    again.
    """

    group: GroupNames = None
    pattern: Annotated[
        bool,
        typer.Option("--pattern", help="Treat names as patterns: 'orders-*', 'orders-?', 'orders-[a-c]'."),
    ] = False

    def _named(self, client: "Client") -> list[str]:
        from coordinator.cli.cluster.groups import is_pattern, list_groups

        if self.pattern:
            return super()._named(client)
        names = dict.fromkeys(self.names)
        if doubtful := set(filter(is_pattern, names)):
            missing = sorted(doubtful.difference(each.group for each in list_groups(client)))
            if missing:
                raise CommandError(
                    f"group {', '.join(missing)} not found (with --pattern, names are patterns)"
                )
        return list(names)


@dataclass(frozen=True)
class OneGroup:
    """The one group that a command changes."""

    group: Annotated[
        str | None, typer.Argument(metavar="GROUP", help="The group's id.", show_default=False)
    ] = None
    group_flag: Annotated[
        str | None,
        typer.Option("--group", metavar="GROUP", help="The same as GROUP.", show_default=False),
    ] = None

    @property
    def group_id(self) -> str:
        """The group's id. Raises CommandError unless the command names exactly one group."""
        if self.group is not None and self.group_flag is not None:
            raise CommandError("expected one GROUP", EXIT_USAGE)
        named = self.group if self.group is not None else self.group_flag
        if named is None:
            raise CommandError("expected the id of a GROUP", EXIT_USAGE)
        return named


@dataclass(frozen=True)
class TopicSelection:
    """The topics and partitions that a command works on."""

    topic: Topics = None
    all_topics: AllTopics = False
