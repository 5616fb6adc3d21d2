# SPDX-License-Identifier: Apache-2.0
"""The errors of the cluster and of connections to it; each text is one line that names the setting to check."""

from typing import Final

from coordinator.config import Address
from protocol.apis import ApiKey, VersionRange
from protocol.errors import ErrorCode, error_name

SERVERS: Final = "upstream.bootstrap.servers"
SECURITY: Final = "upstream.security.protocol"
MECHANISM: Final = "upstream.sasl.mechanism"
CA: Final = "upstream.ssl.ca.location"


class UpstreamError(Exception):
    """The cluster cannot be used now; the text is one line that names the setting to check."""

    rank = 0
    """Of several brokers' errors the one with the highest rank explains best what is wrong."""
    lasting = False
    """True if waiting does not help: a setting or the cluster has to be changed."""


class Unreachable(UpstreamError):
    """No broker responds, or a connection was lost; brokers come back, so a retry may succeed."""

    rank = 1

    def __init__(self, address: Address | str, reason: str, setting: str = SERVERS) -> None:
        super().__init__(f"{setting}: cannot reach {address}: {reason}")


class UpstreamTimeout(Unreachable):
    """A broker has not responded within `upstream.request.timeout.ms`."""

    def __init__(self, address: Address | str, timeout_ms: int) -> None:
        super().__init__(address, f"no answer within {timeout_ms} ms", "upstream.request.timeout.ms")


class UpstreamNotKafka(UpstreamError):
    """The server at an address does not speak Kafka's protocol, or only behind another security protocol."""

    rank = 3
    lasting = True

    def __init__(self, address: Address | str, what: str, setting: str = SERVERS) -> None:
        super().__init__(f"{setting}: {address} {what}")


class UpstreamAuthenticationFailed(UpstreamError):
    """Access is refused: wrong credentials, a mechanism that the cluster lacks, or an untrusted certificate."""

    rank = 4
    lasting = True

    def __init__(self, address: Address, setting: str, reason: str) -> None:
        super().__init__(f"{setting}: {address} refuses the node: {reason}")


class UnreadableCredentials(UpstreamError):
    """A file with the node's credentials cannot be read."""

    rank = 4
    lasting = True

    def __init__(self, setting: str, reason: str) -> None:
        super().__init__(f"{setting}: {reason}")


class UpstreamLacksApiVersion(UpstreamError):
    """The cluster lacks a version of an api that a gateway needs."""

    rank = 5
    lasting = True

    def __init__(
        self, address: Address, api: ApiKey, offered: VersionRange | None, needed: VersionRange
    ) -> None:
        self.lacks_api = offered is None or offered.max < needed.min
        """True if the broker is too old for the api; False if it is so new that it has dropped the versions."""
        has = "none" if offered is None else f"{offered.min} to {offered.max}"
        super().__init__(
            f"{SERVERS}: {address} is too old or no broker: of {api.name} it has the versions {has}, "
            f"and {needed.min} or newer is needed (Kafka 3.0)"
        )


class UpstreamIsOurselves(UpstreamError):
    """The cluster is this gateway, or another one: requests would go round in a circle."""

    rank = 6
    lasting = True

    def __init__(self, what: str) -> None:
        super().__init__(f"{SERVERS}: {what}")


class OtherCluster(UpstreamError):
    """Another cluster responds than before: its topics are not those in which groups have offsets."""

    rank = 6
    lasting = True

    def __init__(self, address: Address | str, cluster_id: str | None, expected: str) -> None:
        super().__init__(
            f"{SERVERS}: {address} belongs to the cluster {cluster_id}; the groups here are of {expected}"
        )


class UpstreamRequestRefused(UpstreamError):
    """The cluster responds to a request with an error: most often the node's user lacks a right."""

    def __init__(self, doing: str, code: int, message: str | None = None) -> None:
        self.code = code
        """Kafka's error code."""
        text = f"{doing}: {error_name(code)}{f' ({message})' if message else ''}"
        hint = _HINTS.get(code)
        super().__init__(f"{text}; {hint}" if hint else text)


class RetryTimeout(UpstreamError):
    """The cluster returned retriable errors for longer than `upstream.request.timeout.ms`."""

    def __init__(self, doing: str, code: int) -> None:
        self.code = code
        """Kafka's error code in the last response."""
        super().__init__(f"{doing}: still {error_name(code)}")


_RIGHTS: Final = "give the user of upstream.sasl.username that right"
_HINTS: Final[dict[int, str]] = {
    ErrorCode.GROUP_AUTHORIZATION_FAILED: _RIGHTS,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: _RIGHTS,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: _RIGHTS,
}


def parse_error_code(code: int) -> ErrorCode:
    """Return the error of a code that a broker has sent; UNKNOWN_SERVER_ERROR if we do not know the code."""
    try:
        return ErrorCode(code)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR
