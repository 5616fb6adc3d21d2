# SPDX-License-Identifier: Apache-2.0
"""The interface through which a session sends and schedules; CLOSED takes its place once the session has ended."""

from collections.abc import Callable
from typing import Final

from coordinator.gateway.routing_types import Bytes
from protocol.errors import ProtocolError
from protocol.mypyc_shim import mypyc_attr


@mypyc_attr(allow_interpreted_subclasses=True)
class SessionIO:
    """The sockets of a session; this base class drops everything.

    Data may be a view of a buffer that is used again after the call.
    """

    node_id: int = -1
    """The id of the node that the client has connected to: a broker, or one of ours."""

    @property
    def peer_name(self) -> str:
        """The client's address and port, for the log."""
        return ""

    def send_to_client(self, data: Bytes) -> None:
        """Send data to the client."""

    def send_to_pipeline(self, pipeline: int, data: Bytes) -> None:
        """Send data to the broker or the coordinator, after connecting to it if necessary."""

    def schedule_call(self, call: Callable[[], None]) -> None:
        """Schedule a call for after other connections have had their turn."""

    def resume_wanted_reads(self) -> None:
        """Read again the sides that the session wants to read; called when a wait has ended without input."""

    def end_after_violation(self, error: ProtocolError) -> None:
        """End the connection, once all written bytes have been sent, because a side has broken the protocol."""

    def abort_after_failure(self) -> None:
        """End the connection at once because of an unexpected exception, the one that is being handled."""


CLOSED: Final = SessionIO()
"""The interface of a session that has ended."""
