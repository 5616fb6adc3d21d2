# SPDX-License-Identifier: Apache-2.0
"""The command `groupkeeper serve`: reads settings from all sources, then runs the node."""

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from coordinator.cli.errors import exit_on_errors
from coordinator.config import Address, Settings, load
from coordinator.config.sources import CONFIG_VARIABLE

if TYPE_CHECKING:
    from coordinator.app import ServingAddresses
    from coordinator.workers.messages import WorkerListening


Run = Callable[[Settings], int]
"""Serves until the process is to stop; returns the exit code."""


def serve(
    context: typer.Context,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", envvar=CONFIG_VARIABLE, help="A TOML file with settings.")
    ] = None,
    listen: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="The address for Kafka clients. [default: 127.0.0.1:9092]"),
    ] = None,
    advertise: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="The address to give to clients. [default: as --listen]"),
    ] = None,
    data_dir: Annotated[
        str | None, typer.Option(metavar="DIR", help="The directory that holds all data. [default: data]")
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT", help="The HTTP address, for browsers and metrics. [default: 127.0.0.1:9308]"
        ),
    ] = None,
    assignments: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Any setting; repeatable. See `groupkeeper settings`."
        ),
    ] = None,
) -> None:
    """Serve until SIGTERM, SIGINT or SIGHUP."""
    with exit_on_errors():
        flags = {
            "--listen": ("listen", listen),
            "--advertise": ("advertise", advertise),
            "--data-dir": ("data.dir", data_dir),
            "--metrics": ("metrics.listen", metrics),
        }
        settings = load(config, os.environ, assignments or (), flags)
    run: Run = context.obj or _run
    raise typer.Exit(run(settings))


def _run(settings: Settings) -> int:
    """Run a node, or a supervisor of several."""
    # only now, so that a mistake in the settings is reported at once
    from coordinator.catalogue.startup_checks import adapt_settings_to_data
    from coordinator.host_resources import real_machine
    from coordinator.telemetry import logs

    logs.configure(settings.log_format, settings.log_level, queued=True)
    fitting = adapt_settings_to_data(real_machine().fs, settings)
    if settings.workers > 1 or settings.is_gateway:
        from coordinator.workers import serve as cluster

        return cluster.serve(fitting, partial(announce_all, sys.stdout))
    from coordinator import single_node

    return single_node.serve(fitting, partial(announce_on_terminal, sys.stdout))


def announce_on_terminal(out: TextIO, serving: "ServingAddresses") -> None:
    """Print where the node listens and commands to try, on a terminal; a pipe gets the log alone."""
    if not out.isatty():
        return
    elsewhere = f" (clients connect to {serving.advertised})" if serving.advertised != serving.listen else ""
    lines = ["", f"Groupkeeper serves Kafka clients on {serving.listen}{elsewhere}."]
    lines += _commands(serving.listen)
    if serving.metrics is not None:
        lines.append(f"  its metrics:  {serving.metrics}")
    lines.append("  point any Kafka client at it as its bootstrap server; Ctrl-C stops it")
    typer.echo("\n".join(lines) + "\n", file=out)


def announce_all(out: TextIO, serving: Mapping[int, "WorkerListening"]) -> None:
    """Print where all nodes listen, on a terminal."""
    if not out.isatty():
        return
    first = min(serving)
    lines = ["", f"Groupkeeper serves Kafka clients with {len(serving)} nodes:"]
    for node, serves in sorted(serving.items()):
        metrics = f", metrics {serves.metrics}" if serves.metrics else ""
        lines.append(f"  node {node}: {Address(*serves.listen)}{metrics}")
    lines += _commands(Address(*serving[first].listen))
    lines.append("  point any Kafka client at one of them as its bootstrap server; Ctrl-C stops them all")
    typer.echo("\n".join(lines) + "\n", file=out)


def _commands(listen: Address) -> list[str]:
    command = "groupkeeper" if shutil.which("groupkeeper") else sys.argv[0]
    return [
        f"  its groups:   {command} groups list --bootstrap {listen}",
        f"  one of them:  {command} groups describe GROUP --bootstrap {listen}",
    ]
