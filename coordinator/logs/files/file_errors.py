# SPDX-License-Identifier: Apache-2.0
"""Translation of storage errors into errors of the log port, for a log in files."""

from coordinator.logs.group_log import LogDamaged, LogError, LogUnavailable
from protocol.errors import ErrorCode
from storage.errors import CorruptLog, LogNotWritable, StorageError


def translate_to_log_error(error: BaseException) -> LogError:
    """Return the port's error for a storage error, or for a bug, whose code is UNKNOWN_SERVER_ERROR."""
    if isinstance(error, LogError):
        return error
    if not isinstance(error, StorageError):
        bug = LogError(str(error))
        bug.code = ErrorCode.UNKNOWN_SERVER_ERROR
        return bug
    kind = LogError
    if isinstance(error, LogNotWritable):
        kind = LogUnavailable
    elif isinstance(error, CorruptLog):
        kind = LogDamaged
    place: dict[str, object] = {"file": error.path}
    where = error.path
    if error.position is not None:
        place["position"] = error.position
        where += f" at byte {error.position}"
    return kind(error.reason, place, where)
