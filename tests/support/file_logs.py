# SPDX-License-Identifier: Apache-2.0
"""The log in files that a node in this process was given."""

from coordinator.app import App
from coordinator.logs.files.file_log import FileLog
from coordinator.logs.files.upkeep import FileLogUpkeep
from storage.log_manager import LogManager


def get_file_log(app: App) -> FileLog:
    """The log port of a node in files."""
    assert isinstance(app.log.groups, FileLog)
    return app.log.groups


def get_files(app: App) -> LogManager:
    """The files of a node."""
    return get_file_log(app).files


def get_upkeep(app: App) -> FileLogUpkeep:
    """The upkeep of a node's files."""
    assert isinstance(app.log.upkeep, FileLogUpkeep)
    return app.log.upkeep
