# SPDX-License-Identifier: Apache-2.0
"""What a session is given: the sockets around it, or none once it has ended."""

from collections.abc import Callable
from typing import Final

from coordinator.gateway.ways import Bytes
from protocol.errors import ProtocolError
from protocol.native import mypyc_attr


@mypyc_attr(allow_interpreted_subclasses=True)
class Outside:
    """The sockets of a session; this base class drops everything.

    What it is given may be a view of a buffer that is used again after the call.
    """

    node_id: int = -1
    """That of the node that the client has connected to: a broker, or one of ours."""

    def to_client(self, data: Bytes) -> None:
        """Send to the client."""

    def to_lane(self, lane: int, data: Bytes) -> None:
        """Send to the broker or the coordinator; connect first where that is still to be done."""

    def soon(self, call: Callable[[], None]) -> None:
        """Call this once other connections have had their turn."""

    def went_on(self) -> None:
        """Something that waited goes on, though nothing has come: look again who is to be read."""

    def broken(self, error: ProtocolError) -> None:
        """A side has broken the protocol: end the connection, once what was sent has left."""

    def failed(self) -> None:
        """The exception that is being handled is none that was foreseen: end the connection at once."""


NOWHERE: Final = Outside()
"""That of a session that has ended."""
