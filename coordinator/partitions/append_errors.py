# SPDX-License-Identifier: Apache-2.0
"""The error codes that clients get if an append fails."""

from collections.abc import Mapping
from typing import Final

from protocol.errors import ErrorCode
from storage.errors import RecordTooLarge, StorageError

_ANSWERED: Final[Mapping[ErrorCode, ErrorCode]] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


def get_unmapped_append_error_code(error: BaseException) -> ErrorCode:
    """Return the code of an exception that an append has raised; `get_client_error_code` maps it for clients."""
    if isinstance(error, RecordTooLarge):
        return ErrorCode.MESSAGE_TOO_LARGE
    if isinstance(error, StorageError):
        return ErrorCode.KAFKA_STORAGE_ERROR
    return ErrorCode.UNKNOWN_SERVER_ERROR


def get_client_error_code(code: ErrorCode) -> ErrorCode:
    """Return the error that clients get, from any api, for a failed append's `code`.

    Kafka does the same in GroupCoordinatorService.handleOperationException.
    """
    return _ANSWERED.get(code, code)
