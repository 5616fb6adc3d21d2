# SPDX-License-Identifier: Apache-2.0
"""A connection to one broker: aiokafka's, which does TLS, SASL, pipelining and time-outs, with our codecs over it.

aiokafka's own requests are of older versions than a gateway needs: no topic ids, no groups by the batch, no KIP-848.
Its connection takes any object that encodes itself and decodes its response, and `RequestOverAiokafka` is one.
"""

import asyncio
import logging
import ssl
from pathlib import Path
from typing import Any, Final

import aiokafka.errors as kafka_errors
from aiokafka.abc import AbstractTokenProvider
from aiokafka.conn import AIOKafkaConnection

from coordinator.cluster_requests.request import NEEDED, ClusterRequest, return_response
from coordinator.config import Address, ConfigError
from coordinator.runtime.one_step_per_turn import run_step_per_turn
from coordinator.runtime.sockets import drop_unsent_on_close
from coordinator.upstream.aiokafka_request import RequestOverAiokafka, UpstreamResponse, choose_version
from coordinator.upstream.config import ReadFile, UpstreamConfig
from coordinator.upstream.connect_errors import EXPECTED, describe_reason, probe_connect_error
from coordinator.upstream.errors import (
    CA,
    SECURITY,
    Unreachable,
    UnreadableCredentials,
    UpstreamAuthenticationFailed,
    UpstreamNotKafka,
    UpstreamTimeout,
)
from protocol.apis import ApiKey, VersionRange
from protocol.client_ids import UPSTREAM_CLIENT_ID
from protocol.errors import ErrorCode, ProtocolError
from protocol.message_codecs import find_message_codec

CONNECT_TIMEOUT_MS_MAX: Final = 10_000
"""The longest wait for a connection, however large `upstream.request.timeout.ms` is."""
CLOSE_TIMEOUT_S: Final = 1.0
LONG_BYTES: Final = 64 * 1024
"""A response up to this size is decoded at once, in some milliseconds at most."""

# Its log lines are dropped: all that matters is in the errors raised here, which are logged once.
logging.getLogger("aiokafka").addHandler(logging.NullHandler())
logging.getLogger("aiokafka").propagate = False


class Credentials:
    """The TLS context, made once, and the credentials, which are read for each connection."""

    def __init__(self, config: UpstreamConfig, read: ReadFile) -> None:
        """Make the TLS context. Raises ConfigError if the file of `upstream.ssl.ca.location` cannot be read."""
        self._config = config
        self._read = read
        self.context = _context(config) if config.uses_tls else None

    def password(self) -> str | None:
        """Return the password for PLAIN and SCRAM, without its line end. Raises UnreadableCredentials."""
        path = self._config.sasl_password_file
        return None if path is None else self._secret(path, "upstream.sasl.password.file")

    def token(self) -> str:
        """Return the token for OAUTHBEARER. Raises UnreadableCredentials."""
        path = self._config.sasl_oauthbearer_token_file
        assert path is not None, "OAUTHBEARER without a file is refused with the settings"
        return self._secret(path, "upstream.sasl.oauthbearer.token.file")

    def _secret(self, path: Path, setting: str) -> str:
        try:
            text = self._read(path).decode()
        except OSError as error:
            raise UnreadableCredentials(setting, f"cannot read {path}: {error.strerror or error}") from None
        except UnicodeDecodeError:
            raise UnreadableCredentials(setting, f"{path} is not UTF-8") from None
        return text.rstrip("\r\n")


class BrokerConnection:
    """An open connection; several requests may be in flight at once, and their responses come in order."""

    def __init__(self, address: Address, config: UpstreamConfig, keys: Credentials) -> None:
        """Prepare a connection that `open` still has to connect."""
        self.address = address
        self._config = config
        self._timeout_ms = config.request_timeout_ms
        self._connection = _connection(address, config, keys)
        self.used = False
        """True if a response was received before: the broker may have closed the connection since, as idle."""

    @classmethod
    async def open(cls, address: Address, config: UpstreamConfig, keys: Credentials) -> "BrokerConnection":
        """Connect, authenticate, and check that the broker has all api versions that a gateway needs.

        Raises UpstreamError.
        """
        link = cls(address, config, keys)
        timeout_ms = min(config.request_timeout_ms, CONNECT_TIMEOUT_MS_MAX)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await link._connection.connect()
                await link._check()
        except EXPECTED as error:
            link._connection.close()
            raise await probe_connect_error(error, address, config, keys.context, timeout_ms) from None
        except BaseException:
            link._connection.close()
            raise
        return link

    @property
    def is_open(self) -> bool:
        """True if requests can be sent: the broker has not closed the connection, as far as is known."""
        return bool(self._connection.connected())

    async def close(self) -> None:
        """Close the connection, and wait a moment for that; requests that are under way end as Unreachable."""
        closed = self._connection.close()
        if closed is not None:
            await asyncio.wait([closed], timeout=CLOSE_TIMEOUT_S)

    async def request_encoded_response(self, question: ClusterRequest[Any]) -> UpstreamResponse:
        """Send a request, and return the response's bytes. Raises Unreachable and UpstreamLacksApiVersion."""
        request = RequestOverAiokafka(self.address, question)
        try:
            frame: bytes = await self._connection.send(request)
        except TimeoutError:
            self._abandon()  # a late response would be taken for the next request's
            raise UpstreamTimeout(self.address, self._timeout_ms) from None
        except (OSError, kafka_errors.KafkaError) as error:
            self._connection.close()
            raise Unreachable(self.address, f"the connection was lost ({describe_reason(error)})") from None
        self.used = True
        return request.find_response_body(frame)

    def _abandon(self) -> None:
        """Close the connection, and have the system drop all that it has not sent yet.

        Else it would try for minutes, and a commit that was given up could arrive after later ones.
        """
        writer = self._connection._writer  # aiokafka has no public access to it
        if writer is not None:
            drop_unsent_on_close(writer.get_extra_info("socket"))
        self._connection.close()

    async def _check(self) -> None:
        """Raise if the broker is too old or refuses us: found now, not when the first group is moved."""
        offers = await self._offers()
        for api, needed in NEEDED.items():
            choose_version(self.address, api, offers.get(api), needed)

    async def _offers(self) -> dict[int, VersionRange]:
        """Return the broker's api versions, by a new request: with SASL only one is allowed before the login."""
        from protocol.kafka_python_messages import ApiVersionsRequest

        asked = ClusterRequest(
            ApiKey.API_VERSIONS, VersionRange(0, 0), lambda _version: ApiVersionsRequest(), return_response
        )
        try:
            response = decode_upstream_answer(await self.request_encoded_response(asked), self.address)
        except Unreachable:
            if self._config.uses_sasl:
                raise
            what = "closes the connection once it is asked something: does it want SASL?"
            raise UpstreamNotKafka(self.address, what, SECURITY) from None
        if response.error_code == ErrorCode.ILLEGAL_SASL_STATE:
            # aiokafka takes the first response to a token for success, whatever it holds (RFC 7628, section 3.2.3)
            raise UpstreamAuthenticationFailed(
                self.address, "upstream.sasl.oauthbearer.token.file", "it does not take the token"
            )
        return {each.api_key: VersionRange(each.min_version, each.max_version) for each in response.api_keys}


def decode_upstream_answer(answer: UpstreamResponse, address: Address | str) -> Any:
    """Return the decoded message of a response. Raises UpstreamNotKafka if the bytes hold none."""
    try:
        return find_message_codec(answer.api, answer.version).decode_response(answer.frame, answer.start)
    except ProtocolError as error:
        raise make_not_kafka_error(answer, address, error) from None


async def decode_answer_in_turns(answer: UpstreamResponse, address: Address | str) -> Any:
    """Return the decoded message of a response; a long one takes several turns of the event loop.

    A cluster may have 100,000 partitions, and a group offsets in all of them. Raises UpstreamNotKafka.
    """
    if len(answer.frame) <= LONG_BYTES:
        return decode_upstream_answer(answer, address)
    from protocol.kafka_python_messages import decode_response_in_steps

    try:
        return await run_step_per_turn(
            decode_response_in_steps(answer.api, answer.version, answer.frame, answer.start)
        )
    except ProtocolError as error:
        raise make_not_kafka_error(answer, address, error) from None


def make_not_kafka_error(
    answer: UpstreamResponse, address: Address | str, error: ProtocolError
) -> UpstreamNotKafka:
    """Return the error for a response that cannot be decoded."""
    what = f"sent what is no {answer.api.name} response of Kafka: {error}"
    return UpstreamNotKafka(Address(address, 0) if isinstance(address, str) else address, what)


class _Token(AbstractTokenProvider):  # type: ignore[misc]  # aiokafka ships no types
    def __init__(self, keys: Credentials) -> None:
        self._keys = keys

    async def token(self) -> str:
        return self._keys.token()


def _connection(address: Address, config: UpstreamConfig, keys: Credentials) -> Any:
    credentials: dict[str, Any] = {}
    if config.uses_sasl:
        credentials["sasl_mechanism"] = config.sasl_mechanism
        if config.sasl_mechanism == "OAUTHBEARER":
            credentials["sasl_oauth_token_provider"] = _Token(keys)
        else:
            credentials["sasl_plain_username"] = config.sasl_username
            credentials["sasl_plain_password"] = keys.password()
    return AIOKafkaConnection(
        address.host,
        address.port,
        client_id=UPSTREAM_CLIENT_ID,
        request_timeout_ms=config.request_timeout_ms,
        ssl_context=keys.context,
        security_protocol=config.security_protocol,
        **credentials,
    )


def _context(config: UpstreamConfig) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(
            cafile=None if config.ssl_ca_location is None else str(config.ssl_ca_location)
        )
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"{CA}: cannot read {config.ssl_ca_location}: {describe_reason(error)}") from None
    context.check_hostname = config.ssl_endpoint_identification
    return context
