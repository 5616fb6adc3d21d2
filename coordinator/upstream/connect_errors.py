# SPDX-License-Identifier: Apache-2.0
"""Explains in one line, which names a setting, why a connection could not be opened."""

import asyncio
import os
import ssl
from typing import Final

import aiokafka.errors as kafka_errors

from coordinator.config import Address
from coordinator.upstream.address_probe import diagnose_address
from coordinator.upstream.config import UpstreamConfig
from coordinator.upstream.errors import (
    CA,
    MECHANISM,
    SECURITY,
    Unreachable,
    UpstreamAuthenticationFailed,
    UpstreamError,
    UpstreamNotKafka,
)

EXPECTED: Final = (
    OSError,
    kafka_errors.KafkaError,
    Unreachable,
    asyncio.TimeoutError,
    AssertionError,
    ValueError,
)
"""The errors with which aiokafka may fail to connect; its SASL checks raise the last two."""


async def probe_connect_error(
    error: Exception,
    address: Address,
    config: UpstreamConfig,
    context: ssl.SSLContext | None,
    timeout_ms: int,
) -> Exception:
    """Return the error to raise for a failed connection; probe the address if `error` itself explains too little."""
    if isinstance(error, UpstreamError) and not isinstance(error, Unreachable):
        return error
    known = _refusal(error, address)
    if known is not None:
        return known
    if isinstance(error, ssl.SSLError | ConnectionResetError) and config.uses_tls:
        return UpstreamNotKafka(address, f"does not speak TLS ({describe_reason(error)})", SECURITY)
    if isinstance(error, OSError) and not isinstance(error, TimeoutError):
        return Unreachable(address, describe_reason(error))
    found = await diagnose_address(address, context, timeout_ms, describe_reason(error))
    return error if isinstance(error, Unreachable) and type(found) is Unreachable else found


def _refusal(error: Exception, address: Address) -> UpstreamError | None:
    if isinstance(error, kafka_errors.UnsupportedSaslMechanismError):
        return UpstreamAuthenticationFailed(address, MECHANISM, describe_reason(error))
    if isinstance(error, kafka_errors.IllegalSaslStateError):
        return UpstreamAuthenticationFailed(address, SECURITY, "this listener has no SASL")
    if isinstance(error, kafka_errors.SaslAuthenticationFailed):
        return UpstreamAuthenticationFailed(address, "upstream.sasl.username", describe_reason(error))
    if isinstance(error, ssl.SSLCertVerificationError):
        return UpstreamAuthenticationFailed(
            address, CA, f"its certificate is not trusted: {error.verify_message}"
        )
    return None


def describe_reason(error: BaseException) -> str:
    """Return the error's own text, in one line."""
    if isinstance(error, ssl.SSLError):
        return str(error.reason or error)
    if isinstance(error, OSError):
        number = error.errno or 0
        known = os.strerror(number) if number > 0 else None  # name look-ups have numbers below 0
        return known or error.strerror or str(error) or type(error).__name__
    return " ".join(str(error).split()) or type(error).__name__
