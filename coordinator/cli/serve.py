# SPDX-License-Identifier: Apache-2.0
"""`groupkeeper serve`: settings from all sources, then the node."""

import os
from pathlib import Path
from typing import Annotated

import typer

from coordinator.cli.errors import one_line_errors
from coordinator.config import load
from coordinator.config.sources import CONFIG_VARIABLE


def serve(
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", envvar=CONFIG_VARIABLE, help="A TOML file with settings.")
    ] = None,
    listen: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Where Kafka clients connect. [default: 127.0.0.1:9092]"),
    ] = None,
    advertise: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="The address clients are told. [default: as --listen]"),
    ] = None,
    data_dir: Annotated[
        str | None, typer.Option(metavar="DIR", help="The directory that holds all data. [default: data]")
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT", help="Where /metrics, /health, /ready are. [default: 127.0.0.1:9308]"
        ),
    ] = None,
    assignments: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Any setting; repeatable. See `groupkeeper settings`."
        ),
    ] = None,
) -> None:
    """Serve one node until SIGTERM or SIGINT."""
    from coordinator import logs

    with one_line_errors():
        flags = {
            "--listen": ("listen", listen),
            "--advertise": ("advertise", advertise),
            "--data-dir": ("data.dir", data_dir),
            "--metrics": ("metrics.listen", metrics),
        }
        settings = load(config, os.environ, assignments or (), flags)
    logs.configure(settings.log_format, settings.log_level)
    # only now, so that a mistake in the settings is reported at once
    from coordinator import app

    raise typer.Exit(app.serve(settings))
