# SPDX-License-Identifier: Apache-2.0
"""Recognizes requests with short responses: members go on with them while the budget of unsent bytes is used up."""

from typing import Any, Final

from coordinator.api.table import Capabilities
from protocol.errors import ProtocolError
from protocol.headers import decode_request_header

BRIEF_BYTES: Final = 16 * 1024
"""The longest response that counts as short: a transport takes it without becoming full."""


def is_brief(node: Any, capabilities: Capabilities, frame: bytes) -> bool:
    """Return whether the response to a request is short.

    For some apis that depends on the names in the request. An unreadable request gets no response, and counts as well.
    """
    try:
        api = capabilities.get_api_for_frame(frame)
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
