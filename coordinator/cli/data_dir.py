# SPDX-License-Identifier: Apache-2.0
"""The data directory of a command: the one that `serve` would use in this environment."""

import os
from pathlib import Path
from typing import Annotated

import typer

from coordinator.cli.errors import EXIT_USAGE, CommandError
from coordinator.config import Settings, load
from coordinator.config.sources import CONFIG_VARIABLE

DataDir = Annotated[
    str | None,
    typer.Option(metavar="DIR", help="The data directory. [default: as for serve in this environment]"),
]


def load_serve_settings(data_dir: str | None) -> Settings:
    """Return the settings that `serve --data-dir` would have with this environment. Raises ConfigError."""
    config = os.environ.get(CONFIG_VARIABLE)
    return load(Path(config) if config else None, os.environ, (), {"--data-dir": ("data.dir", data_dir)})


def require_directory(directory: Path) -> Path:
    """Return `directory` if it is an existing directory. Raises CommandError otherwise."""
    if directory.is_file():
        raise CommandError(f"{directory}: this is a file, and a directory is needed here", EXIT_USAGE)
    if not directory.is_dir():
        raise CommandError(f"{directory}: there is no such directory", EXIT_USAGE)
    return directory


def is_data_dir(directory: Path) -> bool:
    """Return whether a node has started here at least once, even if nothing was committed."""
    from storage.disk.layout import META_FILE

    return (directory / META_FILE).exists()
