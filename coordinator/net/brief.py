# SPDX-License-Identifier: Apache-2.0
"""Which requests have short answers for sure: members go on with them while the budget of unsent bytes is used up."""

from typing import Any, Final

from coordinator.api.table import Capabilities
from protocol.errors import ProtocolError
from protocol.headers import decode_request_header

BRIEF_BYTES: Final = 16 * 1024
"""A transport keeps more than such an answer before it says so."""


def is_brief(node: Any, capabilities: Capabilities, frame: bytes) -> bool:
    """Whether the answer to this request is short.

    Of some apis that depends on what the request names; one that cannot be read has none, and ends its connection.
    """
    try:
        api = capabilities.route(frame)
        if api.short_answers:
            return True
        if api.answer_bytes_max is None or len(frame) > BRIEF_BYTES:
            return False
        header, pos = decode_request_header(frame, api.flexible)
        request = api.decode(frame, pos)
    except ProtocolError:
        return True
    answer_bytes: int = api.answer_bytes_max(node, request, header.api_version)
    return answer_bytes <= BRIEF_BYTES
