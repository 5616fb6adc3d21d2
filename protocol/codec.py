# SPDX-License-Identifier: Apache-2.0
"""What a codec of one API and version is."""

from collections.abc import Callable, Generator
from typing import Any, NamedTuple


class Codec(NamedTuple):
    """The four directions of one API and version.

    The decoders take the buffer and the position where the body starts, ignore bytes after the body, and
    raise ProtocolError only. The encoders return the body, and leave out fields that the version does not
    have.
    """

    decode_request: Callable[[bytes, int], Any]
    encode_response: Callable[[Any], bytes]
    decode_response: Callable[[bytes, int], Any]
    encode_request: Callable[[Any], bytes]
    flexible: bool
    decode_request_in_steps: Callable[[bytes, int], Generator[None, None, Any]] | None = None
    """Gives way every hundred items or every 500 of a hot message; None where it has few, or ten thousand at most."""
