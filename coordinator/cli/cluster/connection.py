# SPDX-License-Identifier: Apache-2.0
"""A blocking connection that speaks Kafka's protocol, one request at a time: enough for commands."""

import socket
import ssl
import struct
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from coordinator.cli.cluster.security import PLAINTEXT, Security
from coordinator.cli.errors import CommandError
from coordinator.cluster_requests.request import ClusterRequest, make_plain_request, read_at_once
from coordinator.config.values import Address
from protocol.apis import ApiKey, VersionRange
from protocol.client_frames import decode_answer, encode_request
from protocol.client_ids import CLI_CLIENT_ID
from protocol.errors import ErrorCode, ProtocolError, error_name
from protocol.headers import RequestHeader
from protocol.message_codecs import find_message_codec

T = TypeVar("T")

RESPONSE_BYTES_MAX: Final = 256 * 1024 * 1024
"""The maximum length of a response: a longer one shows that another protocol speaks on that port."""


PERHAPS_A_GATEWAY: Final = (
    "; a gateway that reaches no broker closes connections, and its /ready shows the reason (metrics.listen, "
    "127.0.0.1:9308)"
)
"""The end of the error if the server closes the connection before its first response."""


class ConnectionClosed(CommandError):
    """The server has closed the connection."""


class NodeConnection:
    """A connection to one node; a wait longer than the seconds that `left_s` returns raises CommandError."""

    def __init__(self, address: Address, left_s: Callable[[], float], security: Security = PLAINTEXT) -> None:
        self.address = address
        self._left_s = left_s
        self.node_id = -1  # until a response names it
        self._correlation_id = 0
        self.is_broken = False
        """True after a request without a response, which the next request would take for its own."""
        try:
            self._socket = self._open(left_s(), security)
        except ssl.SSLError as error:
            raise CommandError(f"cannot connect to {self.name}: TLS: {error.reason or error}") from None
        except OSError as error:
            raise CommandError(f"cannot connect to {self.name}: {_reason(error)}") from None
        try:
            self._offered = self._ask_versions()
            if security.mechanism:
                self._authenticate(security)
        except BaseException:
            self.close()
            raise

    @property
    def name(self) -> str:
        """The node's name in errors."""
        return str(self.address)

    def _open(self, timeout_s: float, security: Security) -> socket.socket:
        opened = security.wrap_in_tls_if_configured(
            socket.create_connection(self.address, timeout=timeout_s), self.address.host
        )
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return opened

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the socket of the connection."""
        self._socket.close()

    def choose_version(self, api: ApiKey, known: VersionRange) -> int:
        """Return the highest version of `api` that caller and server know. Raises CommandError if there is none."""
        offered = self._offered.get(api)
        if offered is None or offered.min > known.max or offered.max < known.min:
            theirs = f"versions {offered.min} to {offered.max}" if offered else "no version"
            raise CommandError(
                f"{self.name} offers {theirs} of {api.name}; this command needs {known.min} to {known.max}"
            )
        return min(known.max, offered.max)

    def offers(self, api: ApiKey) -> bool:
        """Return whether the server offers the api at all."""
        return api in self._offered

    def ask(self, request: ClusterRequest[T]) -> T:
        """Send one request in the highest version that both know, and return what is read from the response.

        Raises CommandError, RetryLater and RefusedByCluster.
        """
        version = self.choose_version(request.api, request.versions)
        return read_at_once(request.read, self.call(request.api, version, request.build(version)))

    def call(self, api: ApiKey, version: int, request: object) -> Any:
        """Send one request and return the decoded response. Raises CommandError if that fails."""
        codec = find_message_codec(api, version)
        self._correlation_id += 1
        header = RequestHeader(api, version, self._correlation_id, CLI_CLIENT_ID)
        frame = encode_request(codec, header, request)
        self.is_broken = True
        try:
            self._socket.settimeout(self._left_s())
            self._socket.sendall(frame)
            response = self._receive()
        except ConnectionError as error:
            raise ConnectionClosed(f"lost the connection to {self.name}: {_reason(error)}") from None
        except OSError as error:
            raise CommandError(f"lost the connection to {self.name}: {_reason(error)}") from None
        try:
            (answered,) = struct.unpack_from(">i", response)
            message = decode_answer(codec, api, response)
        except (ProtocolError, struct.error):
            raise CommandError(f"{self.name} sent an invalid {api.name} response") from None
        if answered != self._correlation_id:
            raise CommandError(f"{self.name} answered request {answered} instead of {self._correlation_id}")
        self.is_broken = False
        return message

    def _ask_versions(self) -> dict[int, VersionRange]:
        from protocol.kafka_python_messages import ApiVersionsRequest

        try:
            response = self.call(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())
        except ConnectionClosed as error:
            raise CommandError(f"{error}{PERHAPS_A_GATEWAY}") from None
        if response.error_code != ErrorCode.NONE:
            raise CommandError(f"{self.name} refused ApiVersions: {error_name(response.error_code)}")
        return {
            offer.api_key: VersionRange(offer.min_version, offer.max_version) for offer in response.api_keys
        }

    def _authenticate(self, security: Security) -> None:
        """Log in by SaslHandshake v1, then SaslAuthenticate v0-v1 until the mechanism is done (KIP-152)."""
        from protocol.kafka_python_messages import SaslAuthenticateRequest, SaslHandshakeRequest

        asked = SaslHandshakeRequest(mechanism=security.mechanism)
        offered = self.ask(make_plain_request(ApiKey.SASL_HANDSHAKE, asked))
        if offered.error_code != ErrorCode.NONE:
            raise CommandError(
                f"{self.name} refused {security.mechanism}: {error_name(offered.error_code)}; "
                f"it offers {', '.join(offered.mechanisms) or 'no mechanism'}"
            )
        login = security.make_sasl_mechanism()
        while not login.is_done():
            request = SaslAuthenticateRequest(auth_bytes=login.auth_bytes())
            answer = self.ask(make_plain_request(ApiKey.SASL_AUTHENTICATE, request))
            if answer.error_code != ErrorCode.NONE:
                message = answer.error_message or error_name(answer.error_code)
                raise CommandError(f"{self.name} refused the user: {message}")
            try:
                login.receive(bytes(answer.auth_bytes))
            except (ValueError, KeyError):
                raise CommandError(f"{self.name} could not prove that it knows the password") from None

    def _receive(self) -> bytes:
        (length,) = struct.unpack(">i", self._receive_exactly(4))
        if not 4 <= length <= RESPONSE_BYTES_MAX:
            raise CommandError(f"{self.name} does not speak Kafka's protocol")
        return self._receive_exactly(length)

    def _receive_exactly(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            part = self._socket.recv(min(count - len(data), 1 << 20))
            if not part:
                raise ConnectionError("the server closed it")
            data += part
        return bytes(data)


def _reason(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "it took too long"
    return error.strerror or str(error)
