# SPDX-License-Identifier: Apache-2.0
"""Which requests have short answers for sure: members go on with them while the budget of unsent bytes is used up."""

from typing import Any, Final

from coordinator.api.offset_fetch_long import answer_bytes_max
from coordinator.api.table import Apis
from coordinator.net.budget import MEMBERS_APIS
from protocol.apis import ApiKey
from protocol.errors import ProtocolError
from protocol.headers import decode_request_header

BRIEF_BYTES: Final = 16 * 1024
"""A transport keeps more than such an answer before it says so."""

_MEMBERS: Final = frozenset(key.to_bytes(2, "big") for key in MEMBERS_APIS)
_OFFSET_FETCH: Final = ApiKey.OFFSET_FETCH.to_bytes(2, "big")


def is_brief(node: Any, apis: Apis, frame: bytes) -> bool:
    """Whether the answer to this request is short.

    That of an OffsetFetch depends on what it names; one that cannot be read has none, and ends its connection.
    """
    if frame[:2] in _MEMBERS:
        return True
    if frame[:2] != _OFFSET_FETCH or len(frame) > BRIEF_BYTES:
        return False
    try:
        header, pos = decode_request_header(frame)
        request = apis.get(header.api_key, header.api_version).decode(frame, pos)
    except ProtocolError:
        return True
    return answer_bytes_max(node, request, header.api_version) <= BRIEF_BYTES
