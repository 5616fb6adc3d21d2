# SPDX-License-Identifier: Apache-2.0
"""Makes the error responses to requests that cannot be handled, and counts and logs such requests."""

from typing import Any

from coordinator.api.context import RequestContext
from coordinator.api.part_error_counting import record_part_errors
from coordinator.api.single_api_version import SingleApiVersion
from coordinator.partitions.group_access import RequestRefused
from coordinator.telemetry.logs import get_logger
from coordinator.telemetry.stats import Stats
from protocol.errors import (
    ErrorCode,
    FrameTooLarge,
    MessageTooLarge,
    ProtocolError,
    TooManyItems,
    UnsupportedVersion,
)

log = get_logger("connection")


def count_protocol_violation(stats: Stats, error: ProtocolError) -> None:
    """Count a request that breaks the protocol, which ends its connection."""
    if isinstance(error, UnsupportedVersion):
        stats.unsupported_requests += 1
    elif isinstance(error, FrameTooLarge | TooManyItems):
        stats.oversized_requests += 1
    else:
        stats.malformed_requests += 1


def make_and_count_error(stats: Stats, ctx: RequestContext, error: ErrorCode) -> Any:
    """Return the error response to a failed request; count its part errors, unless they are counted at encoding."""
    api: SingleApiVersion = ctx.api
    response = api.error_response(ctx.request, error, ctx.api_version)
    if api.counts_part_errors:
        record_part_errors(stats, api.key, api.error_parts, response)
    return response


def log_and_classify_failure(stats: Stats, ctx: RequestContext, error: Exception, peer: str) -> ErrorCode:
    """Return the error code for a request whose work has raised `error`; errors other than refusals are logged."""
    api: SingleApiVersion = ctx.api
    if isinstance(error, RequestRefused):
        return error.code
    if isinstance(error, MessageTooLarge):
        stats.oversized_answers += 1
        log.warning("an answer is too long", api=api.name, peer=peer, reason=str(error))
        return ErrorCode.POLICY_VIOLATION
    log.error("a request failed", api=api.name, version=ctx.api_version, peer=peer, exc_info=error)
    return ErrorCode.UNKNOWN_SERVER_ERROR
