# SPDX-License-Identifier: Apache-2.0
"""Encodes a response into the frame that is sent."""

from typing import Any

from coordinator.api.context import RequestContext
from coordinator.api.part_error_counting import record_part_errors
from coordinator.api.single_api_version import SingleApiVersion
from coordinator.telemetry.stats import Stats
from protocol.errors import ProtocolError
from protocol.headers import encode_response


def encode_and_count_errors(stats: Stats, ctx: RequestContext, response: Any) -> bytes:
    """Return the frame of a response, which begins with its length, and count the errors in it.

    Raises ProtocolError if the response does not fit its schema.
    """
    api: SingleApiVersion = ctx.api
    if api.adapt is not None:
        response = api.adapt(response, ctx.api_version)
    if api.has_error and response.error_code:
        stats.count_error(api.key, response.error_code)
    if api.error_parts and not api.counts_part_errors:
        record_part_errors(stats, api.key, api.error_parts, response)
    try:
        return encode_response(ctx.correlation_id, api.encode(response), api.flexible_response)
    except Exception as error:
        raise ProtocolError(f"the answer to its {api.name} cannot be written: {error}") from error
