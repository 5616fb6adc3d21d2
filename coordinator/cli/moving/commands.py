# SPDX-License-Identifier: Apache-2.0
"""The commands `groupkeeper adopt` and `groupkeeper give-back`, and the code that both use."""

import fcntl
import os
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from coordinator.cli.errors import (
    EXIT_FAILED,
    EXIT_USAGE,
    CommandError,
    exit_on_errors,
    print_error,
    print_line,
)
from coordinator.cli.options import NOTHING_DONE, Execute, Json
from coordinator.config import Settings, load
from coordinator.config.sources import CONFIG_VARIABLE
from protocol.newtypes import GroupId

if TYPE_CHECKING:
    from coordinator.cli.moving.private_nodes_client import PrivateNodes
    from coordinator.cli.moving.results import GroupMoveResult
    from coordinator.upstream.groups import UpstreamGroups

LOCK_FILE: Final = "moving.lock"
TAKEN_AGAIN: Final = (
    "start their consumers at the brokers now, and inspect these groups there: "
    "a client that joins the group through the gateway, or commits without joining, takes the group over again"
)

Group = Annotated[
    list[str] | None, typer.Option(metavar="GROUP", help="The id of a group; repeatable.", show_default=False)
]
All = Annotated[
    bool, typer.Option("--all", help="All groups of the cluster (adopt) or of the gateway (give-back).")
]
Config = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        envvar=CONFIG_VARIABLE,
        help="The TOML file with the gateway's settings. [default: those it runs with]",
    ),
]
DataDir = Annotated[
    str | None, typer.Option(metavar="DIR", help="The gateway's data directory. [default: as for serve]")
]
Assignments = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Any setting of the gateway; repeatable."),
]
Timeout = Annotated[
    float,
    typer.Option(metavar="SECONDS", min=0.1, help="How long the gateway's nodes may take for one group."),
]


def adopt(
    group: Group = None,
    all_groups: All = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Also take over groups with members at the cluster; what these commit there from now on is lost.",
        ),
    ] = False,
    execute: Execute = False,
    config: Config = None,
    data_dir: DataDir = None,
    assignments: Assignments = None,
    json: Json = False,
    timeout: Timeout = 30.0,
) -> None:
    """Take over groups from the cluster of a gateway.

    The gateway must run. The command copies the committed offsets of each group. It may be killed and run again: a
    group that is already here stays as it is. Exit code 0 if all groups are here (or would be), 1 if one is not, with
    the reason, 2 for invalid flags or settings.
    """
    from coordinator.cli.moving.moves import GroupMoveRequest, adopt_requested_groups

    with exit_on_errors():
        settings = _settings(config, data_dir, assignments)
        move = GroupMoveRequest(_chosen(group, all_groups), dry_run=not execute, take_live=force)
        _run(
            settings,
            timeout,
            lambda here, there, done: adopt_requested_groups(here, there, move, done),
            execute=execute,
            json=json,
        )


def give_back(
    group: Group = None,
    all_groups: All = False,
    delete_rest: Annotated[
        bool,
        typer.Option(
            "--delete-rest",
            help="Delete other offsets of these groups at the cluster: those deleted here would be valid there again.",
        ),
    ] = False,
    execute: Execute = False,
    config: Config = None,
    data_dir: DataDir = None,
    assignments: Assignments = None,
    json: Json = False,
    timeout: Timeout = 30.0,
) -> None:
    """Give groups back to the cluster of a gateway.

    The gateway must run. The command writes the offsets of each group to the cluster, and removes the group here. A
    group with members is left as it is. While a group is given back, clients that join it or commit in it try again.
    Other offsets of the group at the cluster are listed and stay. The command may be killed and run again.
    Exit code 0 if all groups are at the cluster (or would be), 1 if one is not, with the reason, 2 for invalid
    flags or settings.
    """
    from coordinator.cli.moving.moves import GroupMoveRequest, give_back_requested_groups

    with exit_on_errors():
        settings = _settings(config, data_dir, assignments)
        move = GroupMoveRequest(_chosen(group, all_groups), dry_run=not execute, delete_rest=delete_rest)
        with _alone(settings.data_dir):
            _run(
                settings,
                timeout,
                lambda here, there, done: give_back_requested_groups(here, there, move, done),
                execute=execute,
                json=json,
            )


Work = Callable[["PrivateNodes", "UpstreamGroups", "list[GroupMoveResult]"], Awaitable[None]]


def _run(settings: Settings, timeout_s: float, work: Work, *, execute: bool, json: bool) -> None:
    """Run `work` and print its results, even if it could not be brought to an end."""
    import asyncio

    from coordinator.cli.moving.results import GIVEN, describe_error, print_results
    from coordinator.upstream.errors import UpstreamError
    from storage.errors import StorageError

    done: list[GroupMoveResult] = []
    stopped: str | None = None
    try:
        asyncio.run(_with_both(settings, timeout_s, work, done))
    except (UpstreamError, StorageError, CommandError) as error:
        stopped = describe_error(error)
    if done or stopped is None:
        print_results(done, json=json)
        if not execute:
            print_line(NOTHING_DONE, err=True)
    if settings.gateway_adopt != "off" and any(each.result == GIVEN for each in done):
        print_line(TAKEN_AGAIN, err=True)
    if stopped is not None:
        raise CommandError(stopped)
    left = sum(not each.moved for each in done)
    if left:
        print_error(f"{left} of {len(done)} groups were not moved")
        raise typer.Exit(EXIT_FAILED)


async def _with_both(settings: Settings, timeout_s: float, work: Work, done: "list[GroupMoveResult]") -> None:
    from coordinator.catalogue import upstream_cluster_id_file
    from coordinator.cli.moving.private_nodes_client import PrivateNodes
    from coordinator.upstream.cluster import UpstreamCluster
    from coordinator.upstream.config import config_from
    from coordinator.upstream.groups import UpstreamGroups
    from storage.disk.filesystem import RealFileSystem

    with PrivateNodes(settings.data_dir, timeout_s) as here:
        here.connect()  # fails if no node runs
        known = upstream_cluster_id_file.read(RealFileSystem(), settings.data_dir)
        cluster = UpstreamCluster(config_from(settings), read=Path.read_bytes, cluster_id=known)
        try:
            await cluster.connect()
            await work(here, UpstreamGroups(cluster), done)
        finally:
            await cluster.close()


def _settings(config: Path | None, data_dir: str | None, assignments: Sequence[str] | None) -> Settings:
    settings = load(config, os.environ, assignments or (), {"--data-dir": ("data.dir", data_dir)})
    return settings if settings.is_gateway else _settings_of_running_gateway(settings.data_dir)


def _settings_of_running_gateway(data_dir: Path) -> Settings:
    """Return the settings of the gateway that runs on this directory, for a command that was given none."""
    from msgspec.structs import replace

    from coordinator.cli.supervisor_client import NoSupervisor, send_order_to_supervisor
    from coordinator.workers.operator_orders import ReadSettings

    try:
        settings = send_order_to_supervisor(data_dir, ReadSettings()).settings
    except NoSupervisor:
        settings = None
    if settings is None or not settings.is_gateway:
        raise CommandError(
            f"no gateway runs on {data_dir}: name the data directory of a running one with --data-dir",
            EXIT_USAGE,
        )
    return replace(settings, data_dir=data_dir)


def _chosen(group: Sequence[str] | None, all_groups: bool) -> list[GroupId] | None:
    if bool(group) == all_groups:
        raise CommandError("expected either --group or --all", EXIT_USAGE)
    return None if all_groups else [GroupId(each) for each in dict.fromkeys(group or ())]


@contextmanager
def _alone(data_dir: Path) -> Iterator[None]:
    """Hold a lock, since two give-backs could write older offsets after newer ones; a killed one loses it."""
    from coordinator.runtime.sockets import PRIVATE_DIRECTORY

    directory = data_dir / PRIVATE_DIRECTORY
    if not directory.is_dir():
        raise CommandError(f"no gateway serves {data_dir}: there is no {directory}")
    try:
        lock = (directory / LOCK_FILE).open("wb")
    except OSError as error:
        raise CommandError(f"{directory / LOCK_FILE}: {error.strerror}") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CommandError("another `groupkeeper give-back` is running") from None
        yield
