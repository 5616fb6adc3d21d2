# SPDX-License-Identifier: Apache-2.0
"""Requests that clients send again and again, byte for byte, which are decoded only the first time."""

from typing import Any, Final

from coordinator.api.handled import Handled

REPEATED_REQUESTS_MAX: Final = 32
REPEATED_BYTES_MAX: Final = 1024
"""How many decoded requests a connection remembers, and of what size at most."""


class Repeated:
    """The requests that one connection has decoded and may see again; what is decoded is shared, and frozen."""

    __slots__ = ("requests",)

    def __init__(self) -> None:
        self.requests: dict[tuple[Handled, bytes], Any] = {}
        """By what handles them, and their bodies."""

    def decode(self, api: Handled, frame: bytes, pos: int) -> Any:
        """The request whose body begins at `pos`. Raises ProtocolError."""
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
        """The connection is gone."""
        self.requests.clear()
