# SPDX-License-Identifier: Apache-2.0
"""Reports whether a SyncGroup request lacks the protocol type or name that its version requires (KIP-559)."""

from typing import Final

from protocol.hot.sync_group import SyncGroupRequest

REQUIRED_FROM: Final = 5


def lacks_protocol(request: SyncGroupRequest, version: int) -> bool:
    """Return whether the request lacks the protocol type or name that its version requires.

    Kafka checks this before anything else (SyncGroupRequest.areMandatoryProtocolTypeAndNamePresent).
    """
    return version >= REQUIRED_FROM and None in (request.protocol_type, request.protocol_name)
