# SPDX-License-Identifier: Apache-2.0
"""A cache of decoded requests: clients repeat many requests byte for byte."""

from typing import Any, Final

from coordinator.api.single_api_version import SingleApiVersion

REPEATED_REQUESTS_MAX: Final = 32
REPEATED_BYTES_MAX: Final = 1024
"""The limits of the cache of one connection: the number of requests, and the size of each in bytes."""


class RequestCache:
    """The decoded requests of one connection; a decoded request is shared, and never changed."""

    __slots__ = ("requests",)

    def __init__(self) -> None:
        self.requests: dict[tuple[SingleApiVersion, bytes], Any] = {}
        """The decoded requests by api version and body."""

    def decode(self, api: SingleApiVersion, frame: bytes, pos: int) -> Any:
        """Return the decoded request whose body begins at `pos`. Raises ProtocolError."""
        key = (api, frame[pos:])
        request = self.requests.get(key)
        if request is None:
            request = api.decode(frame, pos)
            if len(frame) <= REPEATED_BYTES_MAX:
                if len(self.requests) >= REPEATED_REQUESTS_MAX:
                    self.requests.clear()
                self.requests[key] = request
        return request

    def forget(self) -> None:
        """Drop all requests, as the connection has ended."""
        self.requests.clear()
